#include "orchestrator/sweep/attempt_state.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

namespace trainyard::orchestrator {

bool AttemptState::has_to_end(const std::string& reason, Clock::time_point sigterm_at) {
  if (phase != Phase::running) return false;
  phase = Phase::ending;
  why = reason;
  terminate_at = sigterm_at;
  kill_at = sigterm_at + grace.kill;
  return true;
}

bool AttemptState::rank_lost(int rank, Clock::time_point now) {
  return has_to_end(fmt::format("rank {} has ended before the run did", rank), now + grace.peers);
}

bool AttemptState::no_progress(const std::string& description, Clock::time_point now) {
  const bool is_new = has_to_end(description, now);
  if (is_new) hang = description;
  return is_new;
}

void AttemptState::stop(int level, Clock::time_point now) {
  if (level <= 0 || phase == Phase::over) return;
  if (!std::exchange(stopped, true)) {
    if (phase == Phase::running) phase = Phase::ending;
    why = "the sweep was stopped";
    terminate_at = std::min(terminate_at, now);
    kill_at = std::min(kill_at, now + grace.kill);
  }
  if (level >= 2) kill_at = std::min(kill_at, now);
}

int AttemptState::time_passed(Clock::time_point now) {
  if ((phase == Phase::ending || phase == Phase::terminated) && now >= kill_at) {
    phase = Phase::killed;
    return SIGKILL;
  }
  if (phase != Phase::ending || now < terminate_at) return 0;
  phase = Phase::terminated;
  return SIGTERM;
}

}  // namespace trainyard::orchestrator
