// Watches the ranks of one attempt: sees how each ends, tells the others to end once one is lost or none gets
// on, and says what went wrong. Writes down what it sees and does. Used by `Attempt`, from the sweep's one
// thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

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
  void not_launched(const std::string& why);

  void note_ends();  // of ranks, and what follows from them
  void look_for_progress();
  void tell_ranks();  // SIGTERM and SIGKILL, when it is time
  void note_job();    // its number, once it is known
  void stop(int level) { happens(StopRequest{level}); }

  // Nothing while a rank runs or anything is left of the group.
  std::optional<RankGroupEnd> end();
  void release();  // kills what is alive

  const AttemptState& state() const { return state_; }
  bool has_ranks() const { return ranks_ != nullptr; }
  std::vector<RankFailure> failures() const;
  std::optional<RankError> hang() const;
  void add_end_fds(std::vector<int>& fds) const;  // see `RankProcess::end_fd`

 private:
  using Clock = AttemptState::Clock;

  struct RankExitSeen {
    int rank = 0;
    ExitStatus status;
  };
  // It ended well, and its last records have not come yet.
  struct Unheard {
    RankExitSeen exit;
    Clock::time_point until;
  };

  int happens(const AttemptEvent& event);
  std::vector<RankExitSeen> new_exits();
  void note_exit(const RankExitSeen& exit);
  void note_loss(const RankExitSeen& exit);
  void end_ranks(const AttemptEvent& why, double after_seconds);
  bool all_ended() const;
  bool records_may_come() const;
  std::string error_of(const RankExitSeen& failed) const;

  AttemptPlace place_;
  const SweepOptions& options_;
  GracePeriods grace_;
  Collector& collector_;
  AttemptLog& log_;
  std::unique_ptr<RankGroup> ranks_;  // null if they could not be launched, or are gone
  std::string launch_error_;
  bool adopted_ = false;
  AttemptState state_;
  std::vector<std::optional<ExitStatus>> ended_;  // by rank
  std::vector<RankExitSeen> failed_;              // in order of being seen
  std::vector<Unheard> unheard_;
  Watchdog watchdog_;
  std::string job_;
  Clock::time_point next_look_;
};

}  // namespace trainyard::orchestrator
