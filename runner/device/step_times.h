// Times of training steps: the parts of an epoch, and marks in the work of a device.
//
// Where the seconds of an epoch's training went, on the main thread. What remains of the whole is `other`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

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

// Where the seconds of a device went that computes while the host runs ahead: marks in its work, between
// which it did one part of a step. A mark costs the host a microsecond; its time is asked for after the
// epoch, when the device has passed it, so no step waits. The marks are given: events of CUDA, or a fake
// clock's in a test.
//
// Work that is replayed (runner/trainer/cuda_graph_cache.h) has marks of its own, which each replay passes
// anew: they tell of the last one. So all replays are taken to be divided as the last of an epoch was, while
// how long they took together is measured; what the marks do not account for, such as waiting for the host,
// is no part.

class TimeMark {
 public:
  virtual ~TimeMark() = default;
  virtual bool passed() const = 0;                                  // the device has come so far
  virtual double seconds_after(const TimeMark& earlier) const = 0;  // both have passed
};

using MakeMark = std::function<std::unique_ptr<TimeMark>()>;  // behind the work that was given so far

class ReplayedMarks;

// What the device did since the mark before this one.
struct Marked {
  std::unique_ptr<TimeMark> mark;
  double TimeParts::*part = nullptr;           // of nullptr, no part
  std::shared_ptr<ReplayedMarks> inside = {};  // it was a replay of work that has these marks
};

// The marks in work that is captured once and replayed.
class ReplayedMarks final : public PartMarks {
 public:
  explicit ReplayedMarks(MakeMark make) : make_(std::move(make)) {}
  void mark(double TimeParts::*part) override { marked_.push_back({.mark = make_(), .part = part}); }
  // Of the last replay, which the device has done.
  TimeParts take() override;
  double seconds() const;  // from the first mark to the last

 private:
  MakeMark make_;
  std::vector<Marked> marked_;
};

class DeviceTimeline final : public PartMarks {
 public:
  explicit DeviceTimeline(MakeMark make) : make_(std::move(make)) {}

  // What was given to the device since the last mark was `part`; of nullptr, no part.
  void mark(double TimeParts::*part) override { add({.mark = make_(), .part = part}); }
  // It was a replay of work that has these marks.
  void mark_replay(std::shared_ptr<ReplayedMarks> inside) {
    add({.mark = make_(), .inside = std::move(inside)});
  }
  // All seconds since the last call, by part. The device has passed all marks: it was synchronised.
  TimeParts take() override;

 private:
  struct Replays {
    double count = 0;
    double seconds = 0;
  };
  static constexpr std::size_t most_waiting = 4096;
  void add(Marked marked);
  void count_first();  // of those that wait

  MakeMark make_;
  std::deque<Marked> waiting_;
  std::unique_ptr<TimeMark> last_;  // the one before the first that waits
  TimeParts counted_;
  std::map<std::shared_ptr<ReplayedMarks>, Replays> replays_;
};

}  // namespace trainyard::runner
