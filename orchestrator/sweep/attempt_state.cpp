#include "orchestrator/sweep/attempt_state.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

namespace trainyard::orchestrator {

namespace {

using Phase = AttemptState::Phase;
using Time = AttemptState::Clock::time_point;

struct Machine {
  AttemptState state;
  Time now;
  const GracePeriods& grace;

  int on(const RankLost& lost) {
    begin_to_end(fmt::format("rank {} has ended before the run did", lost.rank), now + grace.peers);
    return 0;
  }

  int on(const NoProgress& hang) {
    if (begin_to_end(hang.why, now)) state.hang = hang.why;
    return 0;
  }

  int on(const LimitExceeded& limit) {
    begin_to_end(limit.why, now);
    return 0;
  }

  int on(const StopRequest& stop) {
    if (stop.level <= 0 || state.phase == Phase::over) return 0;
    if (!std::exchange(state.stopped, true)) {
      if (state.phase == Phase::running) state.phase = Phase::ending;
      state.why = "the sweep was stopped";
      state.terminate_at = std::min(state.terminate_at, now);
      state.kill_at = std::min(state.kill_at, now + grace.kill);
    }
    if (stop.level >= 2) state.kill_at = std::min(state.kill_at, now);
    return 0;
  }

  int on(const TimePassed&) {
    const bool may_kill = state.phase == Phase::ending || state.phase == Phase::terminated;
    if (may_kill && now >= state.kill_at) return enter(Phase::killed, SIGKILL);
    if (state.phase == Phase::ending && now >= state.terminate_at) return enter(Phase::terminated, SIGTERM);
    return 0;
  }

  int on(const AllOver&) { return enter(Phase::over, 0); }

  int enter(Phase phase, int signal) {
    state.phase = phase;
    return signal;
  }

  // Returns false if the ranks are being ended already: the first reason stays.
  bool begin_to_end(const std::string& why, Time terminate_at) {
    if (state.phase != Phase::running) return false;
    state.phase = Phase::ending;
    state.why = why;
    state.terminate_at = terminate_at;
    state.kill_at = terminate_at + grace.kill;
    return true;
  }
};

}  // namespace

Transition next(AttemptState state, const AttemptEvent& event, Time now, const GracePeriods& grace) {
  Machine machine{std::move(state), now, grace};
  const int signal = std::visit([&](const auto& each) { return machine.on(each); }, event);
  return {std::move(machine.state), signal};
}

}  // namespace trainyard::orchestrator
