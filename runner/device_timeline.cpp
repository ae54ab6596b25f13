#include "runner/device_timeline.h"

#include <utility>

namespace trainyard::runner {

void DeviceTimeline::mark(double TimeParts::*part) {
  waiting_.push_back({make_(), part});
  while (waiting_.size() > most_waiting && waiting_.front().mark->passed()) count_first();
}

TimeParts DeviceTimeline::take() {
  while (!waiting_.empty()) count_first();
  return std::exchange(counted_, {});
}

void DeviceTimeline::count_first() {
  Marked first = std::move(waiting_.front());
  waiting_.pop_front();
  if (last_ && first.part) counted_.*first.part += first.mark->seconds_after(*last_);
  last_ = std::move(first.mark);
}

}  // namespace trainyard::runner
