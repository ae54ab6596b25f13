// Where the seconds of a device went that computes while the host runs ahead: marks in its work, between
// which it did one part of a step. A mark costs the host a microsecond; its time is asked for after the
// epoch, when the device has passed it, so no step waits. The marks are given: events of CUDA, or a fake
// clock's in a test.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

#include "runner/time_parts.h"

namespace trainyard::runner {

class TimeMark {
 public:
  virtual ~TimeMark() = default;
  virtual bool passed() const = 0;                                  // the device has come so far
  virtual double seconds_after(const TimeMark& earlier) const = 0;  // both have passed
};

using MakeMark = std::function<std::unique_ptr<TimeMark>()>;  // behind the work that was given so far

class DeviceTimeline final : public PartMarks {
 public:
  explicit DeviceTimeline(MakeMark make) : make_(std::move(make)) {}

  // What was given to the device since the last mark was `part`; of nullptr, no part.
  void mark(double TimeParts::*part) override;
  // All seconds since the last call, by part. The device has passed all marks: it was synchronised.
  TimeParts take() override;

 private:
  struct Marked {
    std::unique_ptr<TimeMark> mark;
    double TimeParts::*part;
  };
  static constexpr std::size_t most_waiting = 4096;
  void count_first();  // of those that wait

  MakeMark make_;
  std::deque<Marked> waiting_;
  std::unique_ptr<TimeMark> last_;  // the one before the first that waits
  TimeParts counted_;
};

}  // namespace trainyard::runner
