#include "orchestrator/rank/job_hosts.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace trainyard::orchestrator {

namespace {

constexpr auto reading_patience = std::chrono::milliseconds(200);
constexpr auto shortest_pause = std::chrono::milliseconds(50);
constexpr int pauses_per_reading = 9;  // so readings take at most a tenth of the time

}  // namespace

JobHosts::JobHosts(int world_size, Reader reader) : reader_(std::move(reader)) {
  for (int rank = 0; rank < world_size; ++rank) missing_.insert(missing_.end(), rank);
  // The thread must not get the signals that its process waits for.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { read_on_demand(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

JobHosts::~JobHosts() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool JobHosts::contain(const std::string& address) {
  std::unique_lock lock(mutex_);
  if (addresses_.contains(address)) return true;
  if (missing_.empty() || reading_ || Clock::now() < next_reading_) return false;
  reading_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, reading_patience, [this] { return !reading_; });
  return addresses_.contains(address);
}

// Strangers cause readings too. They must not keep a network file system busy, hence the pauses.
void JobHosts::read_on_demand() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return reading_ || ended_; });
    if (ended_) return;
    const std::set<int> ranks = missing_;
    lock.unlock();
    const auto begin = Clock::now();
    const Addresses found = reader_(ranks);
    const auto end = Clock::now();
    lock.lock();
    for (const auto& [rank, addresses] : found) {
      missing_.erase(rank);
      addresses_.insert(addresses.begin(), addresses.end());
    }
    next_reading_ = end + std::max<Clock::duration>(shortest_pause, pauses_per_reading * (end - begin));
    reading_ = false;
    changed_.notify_all();
  }
}

}  // namespace trainyard::orchestrator
