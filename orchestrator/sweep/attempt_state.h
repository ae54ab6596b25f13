// State machine for the ranks of an attempt, from launch to end. It is a pure function of events.
//
//                rank lost, no progress, limit, stop        SIGTERM             SIGKILL
//   running ──────────────────────────────────────▶ ending ────────▶ terminated ───────▶ killed
//
// Ranks may end in any phase. Then the attempt is over. SIGKILL may come without SIGTERM. Used by
// `RankSupervisor`.
#pragma once

#include <chrono>
#include <string>
#include <variant>

namespace trainyard::orchestrator {

struct AttemptState {
  using Clock = std::chrono::steady_clock;
  enum class Phase { running, ending, terminated, killed, over };

  Phase phase = Phase::running;
  bool stopped = false;  // the sweep was stopped
  std::string why;       // why its ranks have to end; empty: they do not
  std::string hang;      // description of a hang; empty: none
  Clock::time_point terminate_at = Clock::time_point::max();
  Clock::time_point kill_at = Clock::time_point::max();

  // No signal was sent: a rank that ends now ends by itself.
  bool not_signalled() const { return phase == Phase::running || phase == Phase::ending; }
};

struct GracePeriods {
  AttemptState::Clock::duration peers{};  // from the loss of a rank to SIGTERM: peers may notice themselves
  AttemptState::Clock::duration kill{};   // from SIGTERM to SIGKILL
};

// Events.
struct RankLost {  // it ended before the run did, while other ranks live
  int rank = 0;
};
struct NoProgress {
  std::string why;
};
struct LimitExceeded {
  std::string why;
};
struct StopRequest {
  int level = 0;  // 0: none; 1: SIGTERM now; 2: SIGKILL now
};
struct TimePassed {};  // while any rank lives
struct AllOver {};     // all ranks have ended
using AttemptEvent = std::variant<RankLost, NoProgress, LimitExceeded, StopRequest, TimePassed, AllOver>;

struct Transition {
  AttemptState state;
  int signal = 0;  // to all ranks now; 0: none
};
Transition next(AttemptState state, const AttemptEvent& event, AttemptState::Clock::time_point now,
                const GracePeriods& grace);

}  // namespace trainyard::orchestrator
