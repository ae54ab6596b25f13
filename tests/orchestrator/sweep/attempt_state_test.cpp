// Transitions of the state of an attempt, one by one, with grace periods of one and two seconds.
#include "orchestrator/sweep/attempt_state.h"

#include <csignal>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace trainyard::orchestrator;
using namespace std::chrono_literals;

namespace {

using Phase = AttemptState::Phase;
constexpr AttemptState::Clock::time_point story_begin{};

// The state and the signals after a sequence of timed events.
struct Story {
  using Time = AttemptState::Clock::duration;
  AttemptState state = {.grace = {.peers = 1s, .kill = 2s}};
  std::vector<int> signals = {};

  Story& rank_lost(Time time, int rank) {
    state.rank_lost(rank, story_begin + time);
    return *this;
  }
  Story& no_progress(Time time, const std::string& why) {
    state.no_progress(why, story_begin + time);
    return *this;
  }
  Story& stop(Time time, int level) {
    state.stop(level, story_begin + time);
    return *this;
  }
  Story& passed(Time time) {
    if (const int signal = state.time_passed(story_begin + time); signal != 0) signals.push_back(signal);
    return *this;
  }
};

using Signals = std::vector<int>;

}  // namespace

TEST_CASE("ranks without a reason to end get no signal, however long they run") {
  Story story;
  story.passed(0s).passed(100h).stop(100h, 0);
  CHECK(story.state.phase == Phase::running);
  CHECK(story.state.not_signalled());
  CHECK(story.state.why.empty());
  CHECK(story.signals.empty());
}

TEST_CASE("peers of a lost rank get SIGTERM after one grace period and SIGKILL after another, each once") {
  Story story;
  story.rank_lost(10s, 3).passed(10s).passed(10999ms);
  CHECK(story.state.phase == Phase::ending);
  CHECK(story.state.not_signalled());  // a rank that ends now ends by itself
  CHECK(story.state.why == "rank 3 has ended before the run did");
  CHECK(story.signals.empty());
  story.passed(11s).passed(11s).passed(12999ms);
  CHECK(story.state.phase == Phase::terminated);
  CHECK_FALSE(story.state.not_signalled());
  CHECK(story.signals == Signals{SIGTERM});
  story.passed(13s).passed(14s);
  CHECK(story.state.phase == Phase::killed);
  CHECK(story.signals == Signals{SIGTERM, SIGKILL});
}

TEST_CASE("ranks without progress get SIGTERM at once, and the hang is kept even if the sweep is stopped") {
  Story story;
  story.no_progress(5s, "no progress for 3 s").passed(5s);
  CHECK(story.signals == Signals{SIGTERM});
  CHECK(story.state.why == "no progress for 3 s");
  story.stop(6s, 1);
  CHECK(story.state.why == "the sweep was stopped");
  CHECK(story.state.hang == "no progress for 3 s");
  CHECK(story.state.stopped);
}

TEST_CASE("an attempt that is ending keeps its reason and times if another rank is lost or hangs") {
  Story story;
  story.rank_lost(1s, 0).rank_lost(1500ms, 1).no_progress(1600ms, "no progress").passed(2s);
  CHECK(story.state.why == "rank 0 has ended before the run did");
  CHECK(story.state.hang.empty());
  CHECK(story.signals == Signals{SIGTERM});
}

TEST_CASE("a stopped sweep sends SIGTERM at once and SIGKILL after the grace period") {
  Story story;
  story.stop(1s, 1).passed(1s).passed(2999ms);
  CHECK(story.signals == Signals{SIGTERM});
  story.passed(3s);
  CHECK(story.signals == Signals{SIGTERM, SIGKILL});
}

TEST_CASE("a repeated stop neither extends the wait nor sends a second SIGTERM") {
  Story story;
  for (const auto time : {1s, 2s, 3s}) story.stop(time, 1).passed(time);
  CHECK(story.signals == Signals{SIGTERM, SIGKILL});
}

TEST_CASE("a second signal of the user sends SIGKILL at once, with or without SIGTERM before it") {
  Story story;
  story.stop(1s, 2).passed(1s).passed(9s);
  CHECK(story.signals == Signals{SIGKILL});
  Story slower;
  slower.stop(1s, 1).passed(1s).stop(1200ms, 2).passed(1200ms);
  CHECK(slower.signals == Signals{SIGTERM, SIGKILL});
}

TEST_CASE("a stop during the grace period after a lost rank does not wait for its end") {
  Story story;
  story.rank_lost(1s, 0).stop(1100ms, 1).passed(1100ms);
  CHECK(story.signals == Signals{SIGTERM});
  CHECK(story.state.kill_at == story_begin + 3100ms);
}

TEST_CASE("a stop after SIGTERM keeps the earlier time of SIGKILL") {
  Story story;
  story.no_progress(1s, "hang").passed(1s).stop(2s, 1);
  CHECK(story.state.phase == Phase::terminated);
  CHECK(story.state.kill_at == story_begin + 3s);
}

TEST_CASE("an attempt that is over does not react to events") {
  Story story;
  story.state.phase = Phase::over;
  story.stop(2s, 2).rank_lost(3s, 0).passed(4s);
  CHECK(story.state.phase == Phase::over);
  CHECK_FALSE(story.state.stopped);
  CHECK(story.signals.empty());
}
