#include "orchestrator/rank/job_hosts.h"

#include <algorithm>
#include <utility>

namespace trainyard::orchestrator {

namespace {

constexpr auto shortest_pause = std::chrono::milliseconds(50);
constexpr int pauses_per_reading = 9;  // so readings take at most a tenth of the time

}  // namespace

JobHosts::JobHosts(int world_size, Reader reader) : reader_(std::move(reader)) {
  for (int rank = 0; rank < world_size; ++rank) missing_.insert(missing_.end(), rank);
}

bool JobHosts::is_known(const std::string& address) {
  const std::lock_guard lock(known_);
  return addresses_.contains(address);
}

// Strangers cause readings too. They must not keep a network file system busy, hence the pauses.
bool JobHosts::contain(const std::string& address) {
  if (is_known(address)) return true;
  const std::unique_lock reading(reading_, std::try_to_lock);
  const auto begin = Clock::now();
  if (!reading || missing_.empty() || begin < next_reading_) return is_known(address);
  for (const auto& [rank, found] : reader_(missing_)) {
    missing_.erase(rank);
    const std::lock_guard lock(known_);
    addresses_.insert(found.begin(), found.end());
  }
  const auto end = Clock::now();
  next_reading_ = end + std::max<Clock::duration>(shortest_pause, pauses_per_reading * (end - begin));
  return is_known(address);
}

}  // namespace trainyard::orchestrator
