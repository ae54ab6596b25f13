// Where the seconds of an epoch's training went, on the main thread. What remains of the whole is `other`.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>

namespace trainyard::runner {

struct TimeParts {
  double data = 0;                   // choosing and gathering batches
  double forward = 0;                // with the loss
  double backward = 0;               // with launching reductions
  double exposed_communication = 0;  // waiting for gradients, and for what other replicas update
  double transfer = 0;               // messages between stages, from when the neighbour has begun to send
  double bubble = 0;                 // waiting for a stage neighbour
  double optimizer = 0;
  double sum() const {
    return data + forward + backward + exposed_communication + transfer + bubble + optimizer;
  }
  void add(const TimeParts& more, double times) {
    constexpr double TimeParts::*all[] = {
        &TimeParts::data,     &TimeParts::forward, &TimeParts::backward, &TimeParts::exposed_communication,
        &TimeParts::transfer, &TimeParts::bubble,  &TimeParts::optimizer};
    for (const auto part : all) this->*part += times * (more.*part);
  }
};

// Where a device computes while the host runs ahead, what the host sees is no measure: it marks the device's
// work.
class PartMarks {
 public:
  virtual ~PartMarks() = default;
  virtual void mark(
      double TimeParts::*part) = 0;  // what was given to the device since the last mark; may be nullptr
  virtual TimeParts take() = 0;      // once the device is done: its seconds since the last call
};

// Of an epoch. Where ranks share a core, seconds that pass also count what the others do there meanwhile;
// then the main thread's own seconds on its core are measured too (half a microsecond each time).
struct StepTimes {
  std::int64_t steps = 0;
  TimeParts passed;
  std::optional<TimeParts> on_core;  // empty: not measured
  std::optional<double>
      straggler;  // of `passed`, waiting for the slowest replica to come; empty: not measured
  std::shared_ptr<PartMarks> device;  // empty: the host computes itself
};

// Seconds since it was made or last asked.
class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - start_;
    start_ = now;
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Adds what has passed since it was made, or since the last lap, to a part.
class PartWatch {
 public:
  explicit PartWatch(StepTimes& times) : times_(times), core_start_(seconds_on_core()) {
    if (times_.device) times_.device->mark(nullptr);
  }
  void lap(double TimeParts::*part) {
    if (times_.device) return times_.device->mark(part);
    times_.passed.*part += watch_.lap();
    if (times_.on_core) *times_.on_core.*part += core_lap();
  }
  // Some of the seconds that passed were for another part.
  void move(double seconds, double TimeParts::*from, double TimeParts::*to) {
    if (times_.device) return;
    times_.passed.*from -= seconds;
    times_.passed.*to += seconds;
  }
  void skip() {  // belongs to no part
    if (times_.device) return times_.device->mark(nullptr);
    watch_.lap();
    if (times_.on_core) core_lap();
  }

 private:
  double core_lap() {
    const double now = seconds_on_core();
    const double passed = now - core_start_;
    core_start_ = now;
    return passed;
  }
  double seconds_on_core() const {
    if (!times_.on_core) return 0;
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  StepTimes& times_;
  Stopwatch watch_;
  double core_start_;
};

}  // namespace trainyard::runner
