// Time breakdown of an epoch's training, measured on the main thread or by marks in the work of a device.
// The record's `other` is the rest of the epoch's time.
#pragma once

#include <array>
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
  double data = 0;                   // selecting and gathering batches
  double forward = 0;                // including the loss
  double backward = 0;               // including the launch of reductions
  double exposed_communication = 0;  // waiting for gradients and for the updates of other replicas
  double transfer = 0;               // messages between stages, after the neighbour has begun to send
  double bubble = 0;                 // waiting for the neighbour stage
  double optimizer = 0;
  double sum() const;
  void add(const TimeParts& more, double times);
};

struct TimePart {
  double TimeParts::*seconds;
  const char* name;  // in records
};
inline constexpr std::array all_time_parts{
    TimePart{&TimeParts::data, "data"},
    TimePart{&TimeParts::forward, "forward"},
    TimePart{&TimeParts::backward, "backward"},
    TimePart{&TimeParts::exposed_communication, "exposed_communication"},
    TimePart{&TimeParts::transfer, "transfer"},
    TimePart{&TimeParts::bubble, "bubble"},
    TimePart{&TimeParts::optimizer, "optimizer"}};

// Marks in the work of a device. If the host runs ahead of the device, its own clock cannot measure the
// parts.
class PartMarks {
 public:
  virtual ~PartMarks() = default;
  // The device work since the last mark belongs to `part`, or to no part if `part` is nullptr.
  virtual void mark(double TimeParts::*part) = 0;
  virtual TimeParts take() = 0;  // seconds since the last call, once the device has finished
};

// A part of one training step, in seconds of the host's CLOCK_MONOTONIC, which all ranks of the host share.
struct StepEvent {
  double TimeParts::*part = nullptr;
  int micro_batch = -1;  // −1: none
  double begin = 0;
  double end = 0;
};

struct RecordedStep {
  std::int64_t step = 0;  // of the epoch, from 1
  std::vector<StepEvent> events;
};

// Times of an epoch. If ranks share a core, `passed` also contains the time of the other ranks. Then
// `on_core` measures the CPU time of the main thread too, which costs half a microsecond per measurement.
struct StepTimes {
  std::int64_t steps = 0;
  TimeParts passed;
  std::optional<TimeParts> on_core;  // empty: not measured
  std::optional<double> straggler;   // part of `passed`: waiting for the slowest replica; empty: not measured
  std::shared_ptr<PartMarks> device;     // empty: the host computes
  std::optional<RecordedStep> recorded;  // empty: no step of the epoch is recorded
  bool recording = false;                // each part is now added to `recorded`
};

// Seconds since construction or the last lap.
class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - start_;
    start_ = now;
    return passed.count();
  }
  // The last lap, or the construction, in seconds of CLOCK_MONOTONIC.
  double lapped_at() const { return std::chrono::duration<double>(start_.time_since_epoch()).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Adds the time since construction or the last lap to a part.
class PartWatch {
 public:
  explicit PartWatch(StepTimes& times) : times_(times), core_start_(seconds_on_core()) {
    if (times_.device) times_.device->mark(nullptr);
  }
  void lap(double TimeParts::*part, int micro_batch = -1) {
    if (times_.device) return times_.device->mark(part);
    const double seconds = watch_.lap();
    times_.passed.*part += seconds;
    if (times_.recording) record({part, micro_batch, watch_.lapped_at() - seconds, watch_.lapped_at()});
    if (times_.on_core) *times_.on_core.*part += core_lap();
  }
  // Moves the last seconds of the last lap, which was of `from`, to another part.
  void move(double seconds, double TimeParts::*from, double TimeParts::*to) {
    if (times_.device) return;
    times_.passed.*from -= seconds;
    times_.passed.*to += seconds;
    if (!times_.recording) return;
    StepEvent& last = times_.recorded->events.back();
    record({to, last.micro_batch, last.end -= seconds, last.end + seconds});
  }
  void skip() {  // the time since the last lap belongs to no part
    if (times_.device) return times_.device->mark(nullptr);
    watch_.lap();
    if (times_.on_core) core_lap();
  }

 private:
  void record(const StepEvent& event) { times_.recorded->events.push_back(event); }
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

// Time breakdown of a device while the host runs ahead, from marks between the parts of a step.
// - A mark is a CUDA event, or has a fake clock in tests. It costs the host a microsecond.
// - The times are read after the epoch, when the device has passed the marks. So no step waits.
// - Replayed work (runner/trainer/cuda_graph_cache.h) contains its own marks, which hold the times of the
//   last replay only. The breakdown of an epoch's last replay is applied to the measured time of all replays.
// - Time that no mark accounts for, such as waiting for the host, belongs to no part.

class TimeMark {
 public:
  virtual ~TimeMark() = default;
  virtual bool passed() const = 0;                                  // the device has reached the mark
  virtual double seconds_after(const TimeMark& earlier) const = 0;  // both must have passed
};

using MakeMark = std::function<std::unique_ptr<TimeMark>()>;  // makes a mark after the work launched so far

class ReplayedMarks;

// A mark, and the kind of the work since the previous mark.
struct Marked {
  std::unique_ptr<TimeMark> mark;
  double TimeParts::*part = nullptr;           // nullptr: no part
  std::shared_ptr<ReplayedMarks> inside = {};  // set for a replay: the marks inside the replayed work
};

// Marks in work that is captured once and replayed.
class ReplayedMarks final : public PartMarks {
 public:
  explicit ReplayedMarks(MakeMark make) : make_(std::move(make)) {}
  void mark(double TimeParts::*part) override { marked_.push_back({.mark = make_(), .part = part}); }
  // The parts of the last replay. The device must have finished it.
  TimeParts take() override;
  double seconds() const;  // from the first mark to the last

 private:
  MakeMark make_;
  std::vector<Marked> marked_;
};

class DeviceTimeline final : public PartMarks {
 public:
  explicit DeviceTimeline(MakeMark make) : make_(std::move(make)) {}

  void mark(double TimeParts::*part) override { add({.mark = make_(), .part = part}); }
  // The work since the last mark is a replay, with the marks `inside`.
  void mark_replay(std::shared_ptr<ReplayedMarks> inside) {
    add({.mark = make_(), .inside = std::move(inside)});
  }
  // Seconds since the last call, by part. Synchronise the device before, so that all marks have passed.
  TimeParts take() override;

 private:
  struct Replays {
    double count = 0;
    double seconds = 0;
  };
  static constexpr std::size_t most_waiting = 4096;
  void add(Marked marked);
  void count_first();  // counts the first of `waiting_`

  MakeMark make_;
  std::deque<Marked> waiting_;
  std::unique_ptr<TimeMark> last_;  // the mark before the first of `waiting_`
  TimeParts counted_;
  std::map<std::shared_ptr<ReplayedMarks>, Replays> replays_;
};

}  // namespace trainyard::runner
