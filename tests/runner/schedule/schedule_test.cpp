// Schedules as data, compared with theory.
#include "runner/schedule/schedule.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/runner/schedule/schedule_simulation.h"

namespace {

using namespace trainyard;
using namespace trainyard::runner;
using Kind = Action::Kind;

// Calls `check(stages, micro_batches)` for a grid of sizes.
template <class Check>
void for_each_size(const Check& check) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (const int micro_batches : {1, 2, 3, 4, 5, 8, 13, 16}) {
      CAPTURE(stages);
      CAPTURE(micro_batches);
      check(stages, micro_batches);
    }
  }
}

std::vector<int> forwards_and_backwards(const std::vector<Action>& actions) {  // backward of m is -(m + 1)
  std::vector<int> order;
  for (const Action& action : actions) {
    if (action.kind == Kind::forward) order.push_back(action.micro_batch);
    if (action.kind == Kind::backward) order.push_back(-(action.micro_batch + 1));
  }
  return order;
}

}  // namespace

TEST_CASE("no training schedule deadlocks, for any number of stages and micro-batches") {
  for (const char* kind : {"", "gpipe", "1f1b"}) {
    CAPTURE(kind);
    for_each_size([&](int stages, int micro_batches) {
      CHECK(simulate(training_schedule(kind, stages, micro_batches)).problem == "");
    });
  }
}

TEST_CASE("gpipe keeps the activations of all micro-batches, and 1f1b of at most S - stage") {
  for_each_size([](int stages, int micro_batches) {
    const Simulation gpipe = simulate(training_schedule("gpipe", stages, micro_batches));
    const Simulation in_turn = simulate(training_schedule("1f1b", stages, micro_batches));
    const Simulation one = simulate(training_schedule("", stages, micro_batches));
    for (int stage = 0; stage < stages; ++stage) {
      const auto s = static_cast<std::size_t>(stage);
      CHECK(gpipe.live_activations[s] == micro_batches);
      CHECK(in_turn.live_activations[s] == std::min(micro_batches, stages - stage));
      CHECK(one.live_activations[s] == 1);
    }
  });
}

TEST_CASE("with equal stages the bubble of gpipe and 1f1b is (S - 1) / (M + S - 1)") {
  for (const StageSeconds costs : {StageSeconds{1, 2}, StageSeconds{3, 3}, StageSeconds{1, 0.5}}) {
    for_each_size([&](int stages, int micro_batches) {
      const double expected = (stages - 1.0) / (micro_batches + stages - 1.0);
      for (const char* kind : {"gpipe", "1f1b"}) {
        const Simulation simulation = simulate(training_schedule(kind, stages, micro_batches), costs);
        CHECK(simulation.bubble_fraction == doctest::Approx(expected).epsilon(1e-12));
        CHECK(simulation.seconds ==
              doctest::Approx((micro_batches + stages - 1) * (costs.forward + costs.backward)));
      }
    });
  }
}

TEST_CASE("without a pipeline one stage computes at a time: the bubble is (S - 1) / S") {
  for_each_size([](int stages, int micro_batches) {
    const Simulation simulation = simulate(training_schedule("", stages, micro_batches));
    CHECK(simulation.bubble_fraction == doctest::Approx((stages - 1.0) / stages));
  });
}

TEST_CASE("evaluation streams micro-batches forward and keeps no activations") {
  for_each_size([](int stages, int micro_batches) {
    const Schedule schedule = evaluation_schedule(stages, micro_batches);
    const Simulation simulation = simulate(schedule);
    CHECK(simulation.problem == "");
    CHECK(simulation.seconds == doctest::Approx(micro_batches + stages - 1));
    CHECK(*std::max_element(simulation.live_activations.begin(), simulation.live_activations.end()) == 0);
    for (const auto& actions : schedule) {
      CHECK(std::none_of(actions.begin(), actions.end(), [](const Action& action) {
        return action.kind == Kind::backward || action.kind == Kind::receive_gradients;
      }));
    }
  });
}

TEST_CASE("1f1b with two stages and four micro-batches has the published order") {
  // Narayanan et al. 2021, figure 3, with two devices.
  const Schedule schedule = training_schedule("1f1b", 2, 4);
  CHECK(forwards_and_backwards(schedule[0]) == std::vector<int>{0, 1, -1, 2, -2, 3, -3, -4});
  CHECK(forwards_and_backwards(schedule[1]) == std::vector<int>{0, -1, 1, -2, 2, -3, 3, -4});
}

TEST_CASE("a single stage neither sends nor receives") {
  for (const char* kind : {"", "gpipe", "1f1b"}) {
    const auto actions = training_schedule(kind, 1, 3).front();
    CHECK(actions.size() == 6);
    for (const Action& action : actions)
      CHECK((action.kind == Kind::forward || action.kind == Kind::backward));
  }
}

TEST_CASE("gradient accumulation repeats a schedule with the next micro-batches") {
  for (const char* kind : {"", "gpipe", "1f1b"}) {
    const Schedule schedule = in_turns(training_schedule(kind, 3, 4), 4, 5);
    const Simulation simulation = simulate(schedule);
    CHECK(simulation.problem == "");
    CHECK(forwards_and_backwards(schedule[0]).size() == 2 * 4 * 5);
    CHECK(schedule[2].back() == Action{Kind::send_gradients, 19});
    CHECK(simulation.live_activations == simulate(training_schedule(kind, 3, 4)).live_activations);
  }
}

TEST_CASE("the simulator finds a deadlock and names the stage and its action") {
  // Each stage first waits for the other.
  const Schedule schedule{{{Kind::receive_gradients, 0}, {Kind::forward, 0}, {Kind::send_activations, 0}},
                          {{Kind::receive_activations, 0}, {Kind::forward, 0}, {Kind::backward, 0}}};
  CHECK(simulate(schedule).problem == "stage 0 waits forever in receiving gradients of micro-batch 0");
}

TEST_CASE("the simulator refuses schedules that are not a training step") {
  Schedule backward_first = training_schedule("", 1, 1);
  std::reverse(backward_first[0].begin(), backward_first[0].end());
  CHECK(simulate(backward_first).problem == "stage 0 is not ready for backward of micro-batch 0");

  Schedule unread = training_schedule("gpipe", 2, 2);
  std::erase(unread[0], Action{Kind::receive_gradients, 1});
  std::erase(unread[0], Action{Kind::backward, 1});
  CHECK(simulate(unread).problem == "stage 0 leaves a message unread");

  Schedule out_of_order = training_schedule("gpipe", 2, 2);
  std::swap(out_of_order[1][0].micro_batch, out_of_order[1][2].micro_batch);
  CHECK(simulate(out_of_order).problem == "stage 1 is not ready for receiving activations of micro-batch 1");

  Schedule unequal = evaluation_schedule(2, 2);
  std::erase(unequal[0], Action{Kind::send_activations, 1});
  CHECK(simulate(unequal).problem == "stage 1 waits forever in receiving activations of micro-batch 1");
}

TEST_CASE("an unknown schedule is an error") {
  CHECK_THROWS_WITH_AS(training_schedule("gpip", 2, 2), doctest::Contains("there is no schedule \"gpip\""),
                       UserError);
}
