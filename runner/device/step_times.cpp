#include "runner/device/step_times.h"

#include <algorithm>

namespace trainyard::runner {

double TimeParts::sum() const {
  double sum = 0;
  for (const TimePart& part : all_time_parts) sum += this->*part.seconds;
  return sum;
}

void TimeParts::add(const TimeParts& more, double times) {
  for (const TimePart& part : all_time_parts) this->*part.seconds += times * (more.*part.seconds);
}

TimeParts ReplayedMarks::take() {
  TimeParts parts;
  for (std::size_t i = 1; i < marked_.size(); ++i)
    if (marked_[i].part) parts.*marked_[i].part += marked_[i].mark->seconds_after(*marked_[i - 1].mark);
  return parts;
}

double ReplayedMarks::seconds() const {
  return marked_.empty() ? 0 : marked_.back().mark->seconds_after(*marked_.front().mark);
}

void DeviceTimeline::add(Marked marked) {
  waiting_.push_back(std::move(marked));
  while (waiting_.size() > most_waiting && waiting_.front().mark->passed()) count_first();
}

TimeParts DeviceTimeline::take() {
  while (!waiting_.empty()) count_first();
  for (const auto& [inside, replays] : std::exchange(replays_, {})) {
    const double last = inside->seconds();
    if (last > 0) counted_.add(inside->take(), std::min(replays.count, replays.seconds / last));
  }
  return std::exchange(counted_, {});
}

void DeviceTimeline::count_first() {
  Marked first = std::move(waiting_.front());
  waiting_.pop_front();
  if (last_ && first.part) counted_.*first.part += first.mark->seconds_after(*last_);
  if (last_ && first.inside) {
    Replays& replays = replays_[first.inside];
    ++replays.count;
    replays.seconds += first.mark->seconds_after(*last_);
  }
  last_ = std::move(first.mark);
}

}  // namespace trainyard::runner
