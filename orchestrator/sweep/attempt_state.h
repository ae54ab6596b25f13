// State of the ranks of an attempt, from launch to end, as a pure function of what happens to them.
//
//              a rank is lost, none gets on, stop           SIGTERM             SIGKILL
//   running ──────────────────────────────────────▶ ending ────────▶ terminated ───────▶ killed
//
// Ranks may end in each phase, and then the attempt is over. SIGKILL may come without SIGTERM. Used by
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
  bool stopped = false;  // the sweep was told to stop
  std::string why;       // why its ranks have to end; empty while they do not
  std::string hang;      // why none got on; empty if they did
  Clock::time_point terminate_at = Clock::time_point::max();
  Clock::time_point kill_at = Clock::time_point::max();

  // A rank that ends now ends by itself.
  bool untold() const { return phase == Phase::running || phase == Phase::ending; }
};

struct GracePeriods {
  AttemptState::Clock::duration
      peers{};  // between the loss of a rank and SIGTERM: its peers may notice themselves
  AttemptState::Clock::duration kill{};  // between SIGTERM and SIGKILL
};

// What may happen.
struct RankLost {  // it has ended before the run did, and others have not
  int rank = 0;
};
struct NoProgress {
  std::string why;
};
struct StopRequest {
  int level = 0;  // 0: none; 1: SIGTERM now; 2: SIGKILL now
};
struct TimePassed {};  // while any rank lives
struct AllOver {};     // nothing is left of it
using AttemptEvent = std::variant<RankLost, NoProgress, StopRequest, TimePassed, AllOver>;

struct Transition {
  AttemptState state;
  int signal = 0;  // to all ranks now; 0: none
};
Transition next(AttemptState state, const AttemptEvent& event, AttemptState::Clock::time_point now,
                const GracePeriods& grace);

}  // namespace trainyard::orchestrator
