// Transitions of the state of an attempt, one by one, with grace periods of one and two seconds.
#include "orchestrator/sweep/attempt_state.h"

#include <csignal>

#include <doctest/doctest.h>

using namespace trainyard::orchestrator;
using namespace std::chrono_literals;

namespace {

using Phase = AttemptState::Phase;
constexpr AttemptState::Clock::time_point story_begin{};
constexpr GracePeriods grace_periods{.peers = 1s, .kill = 2s};

// The state and the signals after a sequence of timed events.
struct Story {
  AttemptState state = {};
  std::vector<int> signals = {};

  Story& at(AttemptState::Clock::duration time, const AttemptEvent& event) {
    const Transition transition = next(state, event, story_begin + time, grace_periods);
    state = transition.state;
    if (transition.signal != 0) signals.push_back(transition.signal);
    return *this;
  }
};

using Signals = std::vector<int>;

}  // namespace

TEST_CASE("ranks without a reason to end get no signal, however long they run") {
  Story story;
  story.at(0s, TimePassed{}).at(100h, TimePassed{}).at(100h, StopRequest{0});
  CHECK(story.state.phase == Phase::running);
  CHECK(story.state.not_signalled());
  CHECK(story.state.why.empty());
  CHECK(story.signals.empty());
}

TEST_CASE("peers of a lost rank get SIGTERM after one grace period and SIGKILL after another, each once") {
  Story story;
  story.at(10s, RankLost{3}).at(10s, TimePassed{}).at(10999ms, TimePassed{});
  CHECK(story.state.phase == Phase::ending);
  CHECK(story.state.not_signalled());  // a rank that ends now ends by itself
  CHECK(story.state.why == "rank 3 has ended before the run did");
  CHECK(story.signals.empty());
  story.at(11s, TimePassed{}).at(11s, TimePassed{}).at(12999ms, TimePassed{});
  CHECK(story.state.phase == Phase::terminated);
  CHECK_FALSE(story.state.not_signalled());
  CHECK(story.signals == Signals{SIGTERM});
  story.at(13s, TimePassed{}).at(14s, TimePassed{});
  CHECK(story.state.phase == Phase::killed);
  CHECK(story.signals == Signals{SIGTERM, SIGKILL});
}

TEST_CASE("ranks without progress get SIGTERM at once, and the hang is kept even if the sweep is stopped") {
  Story story;
  story.at(5s, NoProgress{"no progress for 3 s"}).at(5s, TimePassed{});
  CHECK(story.signals == Signals{SIGTERM});
  CHECK(story.state.why == "no progress for 3 s");
  story.at(6s, StopRequest{1});
  CHECK(story.state.why == "the sweep was stopped");
  CHECK(story.state.hang == "no progress for 3 s");
  CHECK(story.state.stopped);
}

TEST_CASE("an attempt that is ending keeps its reason and times if another rank is lost or hangs") {
  Story story;
  story.at(1s, RankLost{0})
      .at(1500ms, RankLost{1})
      .at(1600ms, NoProgress{"no progress"})
      .at(2s, TimePassed{});
  CHECK(story.state.why == "rank 0 has ended before the run did");
  CHECK(story.state.hang.empty());
  CHECK(story.signals == Signals{SIGTERM});
}

TEST_CASE("a stopped sweep sends SIGTERM at once and SIGKILL after the grace period") {
  Story story;
  story.at(1s, StopRequest{1}).at(1s, TimePassed{}).at(2999ms, TimePassed{});
  CHECK(story.signals == Signals{SIGTERM});
  story.at(3s, TimePassed{});
  CHECK(story.signals == Signals{SIGTERM, SIGKILL});
}

TEST_CASE("a repeated stop neither extends the wait nor sends a second SIGTERM") {
  Story story;
  for (const auto time : {1s, 2s, 3s}) story.at(time, StopRequest{1}).at(time, TimePassed{});
  CHECK(story.signals == Signals{SIGTERM, SIGKILL});
}

TEST_CASE("a second signal of the user sends SIGKILL at once, with or without SIGTERM before it") {
  Story story;
  story.at(1s, StopRequest{2}).at(1s, TimePassed{}).at(9s, TimePassed{});
  CHECK(story.signals == Signals{SIGKILL});
  Story slower;
  slower.at(1s, StopRequest{1}).at(1s, TimePassed{}).at(1200ms, StopRequest{2}).at(1200ms, TimePassed{});
  CHECK(slower.signals == Signals{SIGTERM, SIGKILL});
}

TEST_CASE("a stop during the grace period after a lost rank does not wait for its end") {
  Story story;
  story.at(1s, RankLost{0}).at(1100ms, StopRequest{1}).at(1100ms, TimePassed{});
  CHECK(story.signals == Signals{SIGTERM});
  CHECK(story.state.kill_at == story_begin + 3100ms);
}

TEST_CASE("a stop after SIGTERM keeps the earlier time of SIGKILL") {
  Story story;
  story.at(1s, NoProgress{"hang"}).at(1s, TimePassed{}).at(2s, StopRequest{1});
  CHECK(story.state.phase == Phase::terminated);
  CHECK(story.state.kill_at == story_begin + 3s);
}

TEST_CASE("an attempt that is over does not react to events") {
  Story story;
  story.at(1s, AllOver{}).at(2s, StopRequest{2}).at(3s, RankLost{0}).at(4s, TimePassed{});
  CHECK(story.state.phase == Phase::over);
  CHECK_FALSE(story.state.stopped);
  CHECK(story.signals.empty());
}
