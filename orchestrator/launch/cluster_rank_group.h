// Ranks on other hosts, supervised by tasks there (`rank_agent.h`). The end of each rank is read from the
// file that its task writes. Subclasses report the state of the job as a whole. Files may appear late.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>

#include "orchestrator/launch/launcher.h"
#include "orchestrator/rank/rank_group_files.h"

namespace trainyard::orchestrator {

class ClusterRankGroup : public RankGroup {
 public:
  explicit ClusterRankGroup(const LaunchSpec& spec);
  std::optional<ExitStatus> poll(int rank) override;
  std::optional<RankGroupEnd> end() override;
  void signal(int number) override;

 protected:
  using EndReason = experiments::EndReason;
  static std::optional<EndReason> preempted_if(bool preempted) {
    return preempted ? std::optional(EndReason::preempted) : std::nullopt;
  }
  // How the job ended. Empty while anything of it is left.
  virtual std::optional<RankGroupEnd> over() = 0;
  virtual void step() = 0;  // polls the state of the job; never blocks
  virtual void signal_job(int number) = 0;
  virtual void poll_soon() {}  // the job is about to end: poll it more often
  virtual void detach() {}     // all ranks exited cleanly, so the job ends by itself
  // Whether a rank that fails may have been ended by the launcher: it kills processes one by one, and a rank whose
  // children are killed first fails by itself.
  virtual bool launcher_ends_ranks() const { return false; }
  bool begun() const { return begun_; }  // a rank has written something
  bool logs() const { return std::filesystem::exists(first_rank_log_); }
  // Whether the program that starts the ranks has failed before it started any.
  bool never_began(const ExitStatus& of_starter) const {
    return of_starter.code > 0 && !logs() && exits_.empty();
  }
  bool all_ended() const { return static_cast<int>(exits_.size()) == world_size_; }
  bool signalled() const { return signalled_by_us_; }  // `signal` was called

 private:
  using Clock = std::chrono::steady_clock;
  void poll_job();
  bool all_clean() const;
  bool ended_from_outside(const RankExit& exit) const {
    return exit.received_signal != 0 || (launcher_ends_ranks() && !exit.status.clean());
  }

  std::filesystem::path folder_, first_rank_log_;
  int world_size_;
  std::map<int, RankExit> exits_;
  int signal_of_others_ = 0;  // that ended a rank but we did not send
  bool signalled_by_us_ = false;
  bool begun_ = false;
  bool any_lost_ = false;  // a rank has no exit file
  Clock::time_point next_poll_, over_since_ = Clock::time_point::max();
};

}  // namespace trainyard::orchestrator
