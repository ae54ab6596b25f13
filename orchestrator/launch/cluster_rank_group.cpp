#include "orchestrator/launch/cluster_rank_group.h"

#include <algorithm>
#include <csignal>

#include "experiments/protocol/record.h"

namespace trainyard::orchestrator {

namespace {

constexpr auto between_polls = std::chrono::milliseconds(100);
constexpr auto late_files = std::chrono::seconds(5);  // maximum delay on a network file system
constexpr const char* at_its_limit = "its time limit was reached";

}  // namespace

ClusterRankGroup::ClusterRankGroup(const LaunchSpec& spec)
    : folder_(spec.directory),
      first_rank_log_(spec.ranks.front().log),
      world_size_(static_cast<int>(spec.ranks.size())) {}

void ClusterRankGroup::poll_job() {
  const auto now = Clock::now();
  if (now < next_poll_) return;
  next_poll_ = now + between_polls;
  step();
  const auto names = fresh_listing(folder_);
  const auto there = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  for (int rank = 0; rank < world_size_; ++rank) {
    begun_ = begun_ || there(experiments::rank_records_name(rank)) || there(rank_exit_name(rank));
    if (exits_.contains(rank) || !there(rank_exit_name(rank))) continue;
    const auto exit = read_rank_exit(folder_, rank);
    if (!exit) continue;
    if (ended_from_outside(*exit) && !signalled_by_us_ && signal_of_others_ == 0)
      signal_of_others_ = exit->received_signal == 0 ? SIGKILL : exit->received_signal;
    exits_.emplace(rank, *exit);
  }
  const auto job = over();
  if (job && over_since_ == Clock::time_point::max())
    over_since_ = job->reason == EndReason::not_started ? now - late_files : now;
}

std::optional<ExitStatus> ClusterRankGroup::poll(int rank) {
  poll_job();
  const auto exit = exits_.find(rank);
  if (exit != exits_.end()) {
    ExitStatus status = exit->second.status;
    status.lost = !status.clean() && signal_of_others_ != 0 && ended_from_outside(exit->second);
    if (!status.clean()) poll_soon();
    return status;
  }
  if (over_since_ == Clock::time_point::max() || Clock::now() - over_since_ < late_files) return std::nullopt;
  any_lost_ = true;
  return ExitStatus{-1, 0, true};
}

bool ClusterRankGroup::all_clean() const {
  return all_ended() && std::all_of(exits_.begin(), exits_.end(),
                                    [](const auto& exit) { return exit.second.status.clean(); });
}

std::optional<RankGroupEnd> ClusterRankGroup::end() {
  if (all_clean()) {
    detach();
    return RankGroupEnd{};
  }
  poll_job();
  const auto job = over();
  if (!job) return std::nullopt;
  if (job->reason == EndReason::not_started) return job;
  if (job->reason == EndReason::out_of_time || signal_of_others_ == SIGUSR1)
    return RankGroupEnd{EndReason::out_of_time, at_its_limit};
  if (job->reason) return job;
  if (signal_of_others_ != 0)
    return RankGroupEnd{EndReason::preempted, "its ranks were ended from outside: " + job->why};
  if (any_lost_ && !signalled_by_us_ && !begun_ && !logs())
    return RankGroupEnd{EndReason::not_started, job->why + "; no rank has written to " + folder_.string() +
                                                    ": set `spool` in [machine] to a folder that this host "
                                                    "and all nodes share"};
  if (any_lost_ && !signalled_by_us_) return RankGroupEnd{EndReason::preempted, job->why};
  return RankGroupEnd{};
}

void ClusterRankGroup::signal(int number) {
  signalled_by_us_ = true;
  signal_job(number);
}

}  // namespace trainyard::orchestrator
