// Simulated steps compared with closed forms.
#include "runner/schedule/step_simulator.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace {

using namespace trainyard;
using namespace trainyard::runner;
using doctest::Approx;

constexpr double forward = 1, backward = 2;  // seconds per micro-batch

StepPlan pipeline(const char* kind, int stages, int micro_batches, int replicas = 1) {
  StepPlan plan;
  plan.schedule = training_schedule(kind, stages, micro_batches);
  const RankWork rank{.forward = micro_batches * forward, .backward = micro_batches * backward};
  plan.ranks.assign(static_cast<std::size_t>(stages) * static_cast<std::size_t>(replicas), rank);
  return plan;
}

StepPlan data_parallel(std::vector<RankWork> ranks) {
  StepPlan plan;
  plan.schedule = training_schedule("", 1, 1);
  plan.ranks = std::move(ranks);
  return plan;
}

}  // namespace

TEST_CASE("the bubble of gpipe and 1f1b is (p - 1) / (m + p - 1) of a step, and steps do not overlap") {
  for (const char* kind : {"gpipe", "1f1b"}) {
    for (const int stages : {1, 2, 3, 4, 8}) {
      for (const int micro_batches : {1, 2, 3, 4, 8, 16}) {
        CAPTURE(kind);
        CAPTURE(stages);
        CAPTURE(micro_batches);
        if (micro_batches < stages) continue;
        for (const int steps : {1, 3}) {
          const SimulatedSteps found = simulate_steps(pipeline(kind, stages, micro_batches), steps);
          const double whole = (micro_batches + stages - 1) * (forward + backward);
          CHECK(found.seconds == Approx(whole));
          CHECK(found.ranks.front().bubble == Approx((stages - 1) * (forward + backward)));
          CHECK(found.ranks.front().bubble / whole == Approx((stages - 1.0) / (micro_batches + stages - 1)));
          CHECK(found.ranks.front().compute == Approx(micro_batches * (forward + backward)));
        }
      }
    }
  }
}

TEST_CASE("without a pipeline all stages take turns") {
  const SimulatedSteps found = simulate_steps(pipeline("", 3, 4), 2);
  CHECK(found.seconds == Approx(3 * 4 * (forward + backward)));
}

TEST_CASE("if stages have different lengths, the slowest sets the pace and the others wait for it") {
  StepPlan plan = pipeline("gpipe", 2, 4);
  plan.ranks[1].forward *= 3;  // 4 x 3, after the first micro-batch has arrived
  plan.ranks[1].backward *= 3;
  // 1 + 4 x 3 forward, 4 x 6 backward, and the first stage's last backward.
  CHECK(simulate_steps(plan, 1).seconds == Approx(1 + 12 + 24 + 2));
}

TEST_CASE("a message takes the time of its sender and that of its receiver") {
  StepPlan plan = pipeline("", 2, 1);
  plan.ranks[0].transfer = 0.2;  // one sent, one received
  plan.ranks[1].transfer = 0.4;
  const SimulatedSteps found = simulate_steps(plan, 1);
  CHECK(found.seconds == Approx(2 * (forward + backward) + 0.6));
  CHECK(found.ranks[0].transfer == Approx(0.2));
  CHECK(found.ranks[1].transfer == Approx(0.4));
  plan.messages_stream = true;  // then receivers hide the time of senders
  CHECK(simulate_steps(plan, 1).seconds == Approx(2 * (forward + backward) + 0.1 + 0.2));
}

TEST_CASE("the step of replicas with a hidden reduction takes only their computation time") {
  const RankWork rank{.forward = forward, .backward = backward};
  const SimulatedSteps found = simulate_steps(data_parallel({rank, rank, rank}), 5);
  CHECK(found.seconds == Approx(forward + backward));
  for (const StepSeconds& each : found.ranks) CHECK(each.communication == 0);
}

TEST_CASE("replicas wait for the slowest, then reduce and update") {
  const RankWork fast{.input = 0.1, .forward = 1, .backward = 2, .reduction = 0.3, .optimizer = 0.5};
  RankWork slow = fast;
  slow.backward = 2.75;
  const SimulatedSteps found = simulate_steps(data_parallel({fast, slow}), 4);
  CHECK(found.seconds == Approx(0.1 + 1 + 2.75 + 0.3 + 0.5));
  CHECK(found.ranks[0].communication == Approx(0.75 + 0.3));
  CHECK(found.ranks[1].communication == Approx(0.3));
  CHECK(found.ranks[0].optimizer == Approx(0.5));
  for (const StepSeconds& each : found.ranks) CHECK(each.sum() == Approx(found.seconds));
}

TEST_CASE(
    "two ranks on one core take twice as long if both compute, and a waiting rank leaves it to the other") {
  const RankWork rank{.forward = 1, .backward = 2};
  StepPlan plan = data_parallel({rank, rank});
  plan.cores = {7, 7};
  const SimulatedSteps both = simulate_steps(plan, 3);
  CHECK(both.seconds == Approx(6));
  CHECK(both.ranks[0].compute == Approx(3));
  CHECK(both.ranks[0].core_wait == Approx(3));
  // Stages of one replica take turns, so sharing a core does not slow them down.
  StepPlan turns = pipeline("", 2, 2);
  turns.cores = {0, 0};
  CHECK(simulate_steps(turns, 3).seconds == Approx(simulate_steps(pipeline("", 2, 2), 3).seconds));
  // Two replicas of two stages on two cores: each core is always busy, with 2 x 2 micro-batches.
  StepPlan mesh = pipeline("1f1b", 2, 2, 2);
  mesh.cores = {0, 1, 1, 0};
  CHECK(simulate_steps(mesh, 50).seconds >= 4 * (forward + backward));
  CHECK(simulate_steps(mesh, 50).seconds < 6 * (forward + backward));
}

TEST_CASE("stages that clip their gradients synchronise before the optimizer") {
  StepPlan plan = pipeline("gpipe", 2, 2);
  plan.ranks[1].optimizer = 1;
  const double apart = simulate_steps(plan, 1).seconds;  // hidden behind the first stage's backward pass
  plan.stages_meet = true;
  CHECK(apart == Approx(3 * (forward + backward)));
  CHECK(simulate_steps(plan, 1).seconds == Approx(apart + 1));
}

TEST_CASE("a schedule that never ends is an error") {
  StepPlan plan = pipeline("gpipe", 2, 2);
  plan.schedule[1].insert(plan.schedule[1].begin(), Action{Action::Kind::receive_gradients, 0});
  CHECK_THROWS_AS(simulate_steps(plan, 1), InternalError);
  plan.ranks.pop_back();
  CHECK_THROWS_AS(simulate_steps(plan, 1), InternalError);
}
