// Where the seconds of a device went that computes while the host runs ahead: marks in its work, between
// which it did one part of a step. A mark costs the host a microsecond; its time is asked for after the
// epoch, when the device has passed it, so no step waits. The marks are given: events of CUDA, or a fake
// clock's in a test.
//
// Work that is replayed (runner/trainer/captured_steps.h) has marks of its own, which each replay passes
// anew: they tell of the last one. So all replays are taken to be divided as the last of an epoch was, while
// how long they took together is measured; what the marks do not account for, such as waiting for the host,
// is no part.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runner/device/time_parts.h"

namespace trainyard::runner {

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
