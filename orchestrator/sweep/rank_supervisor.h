// Supervisor of the ranks of one attempt. Used by `Attempt`, from the only thread of the sweep.
//
// It detects how each rank ends. It ends the others if a rank is lost or none makes progress. It finds the
// cause, and records what it sees and does.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/sweep/attempt_end.h"
#include "orchestrator/sweep/attempt_log.h"
#include "orchestrator/sweep/attempt_state.h"
#include "orchestrator/sweep/collector.h"
#include "orchestrator/sweep/sweep.h"
#include "orchestrator/sweep/watchdog.h"

namespace trainyard::orchestrator {

class RankSupervisor {
 public:
  RankSupervisor(AttemptPlace place, const SweepOptions& options, Collector& collector, AttemptLog& log);

  // `adopted`: an earlier orchestrator launched them.
  void watch(std::unique_ptr<RankGroup> ranks, bool adopted);
  void not_launched(const std::string& why) { launch_error_ = why; }

  void note_ends();  // detects ended ranks and reacts
  void check_progress();
  void signal_ranks();  // sends SIGTERM and SIGKILL when they are due
  void note_job();      // records the job number once it is known
  void exceeded(const std::string& limit);
  void stop(int level) { state_.stop(level, Clock::now()); }

  // Empty while a rank runs or anything of the group is left.
  std::optional<RankGroupEnd> end();
  void release();  // kills live ranks

  const AttemptState& state() const { return state_; }
  bool all_ended() const;
  bool has_ranks() const { return ranks_ != nullptr; }
  std::vector<RankFailure> failures() const;
  std::optional<AttemptEnd> hang() const;

 private:
  using Clock = AttemptState::Clock;

  struct RankExitSeen {
    int rank = 0;
    ExitStatus status;
    Clock::time_point records_until = {};  // on a network file system its last records may arrive until then
  };

  std::vector<RankExitSeen> new_exits();
  void note_exit(const RankExitSeen& exit);
  void note_loss(const RankExitSeen& exit);
  void log_ending(double after_seconds) const;
  bool records_may_come() const;
  std::string reason_of(int signal) const;
  std::string error_of(const RankExitSeen& failed) const;

  AttemptPlace place_;
  const SweepOptions& options_;
  Collector& collector_;
  AttemptLog& log_;
  std::unique_ptr<RankGroup> ranks_;  // null if they could not be launched, or are gone
  std::string launch_error_;
  bool adopted_ = false;
  AttemptState state_;
  std::vector<std::optional<ExitStatus>> ended_;  // by rank
  std::vector<RankExitSeen> failed_;              // in the order of detection
  std::vector<RankExitSeen> pending_exits_;       // whose last records are not collected
  bool all_collected_ = false;                    // when the ends were noted
  Watchdog watchdog_;
  std::optional<std::int64_t> memory_kills_before_ = memory_kills();
  std::string job_;
  Clock::time_point next_poll_;
};

}  // namespace trainyard::orchestrator
