// State machine for the ranks of an attempt, from launch to end. It depends only on its events and their times.
//
//                rank lost, no progress, limit, stop        SIGTERM             SIGKILL
//   running ──────────────────────────────────────▶ ending ────────▶ terminated ───────▶ killed
//
// Ranks may end in any phase. Then the attempt is over. SIGKILL may come without SIGTERM. Used by
// `RankSupervisor`.
#pragma once

#include <chrono>
#include <string>

namespace trainyard::orchestrator {

struct GracePeriods {
  // From the loss of a rank to SIGTERM: peers may notice themselves.
  std::chrono::steady_clock::duration peers{};
  std::chrono::steady_clock::duration kill{};  // from SIGTERM to SIGKILL
};

struct AttemptState {
  using Clock = std::chrono::steady_clock;
  enum class Phase { running, ending, terminated, killed, over };

  GracePeriods grace = {};
  Phase phase = Phase::running;
  bool stopped = false;   // the sweep was stopped
  std::string why = {};   // why its ranks have to end; empty: they do not
  std::string hang = {};  // description of a hang; empty: none
  Clock::time_point terminate_at = Clock::time_point::max();
  Clock::time_point kill_at = Clock::time_point::max();

  // Events. They return false if the ranks are being ended already: the first reason stays.
  bool rank_lost(int rank, Clock::time_point now);  // it ended before the run did, while other ranks live
  bool no_progress(const std::string& description, Clock::time_point now);
  bool has_to_end(const std::string& reason, Clock::time_point sigterm_at);

  void stop(int level, Clock::time_point now);  // 0: no change; 1: SIGTERM now; 2: SIGKILL now
  // While any rank lives. Returns the signal to all ranks now, 0 for none.
  int time_passed(Clock::time_point now);

  // No signal was sent: a rank that ends now ends by itself.
  bool not_signalled() const { return phase == Phase::running || phase == Phase::ending; }
};

}  // namespace trainyard::orchestrator
