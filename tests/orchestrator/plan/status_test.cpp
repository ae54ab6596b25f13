#include "orchestrator/plan/status.h"

#include <sstream>

#include <doctest/doctest.h>

#include "tests/orchestrator/support/sweep_fixture.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

Plan plan_of_two() {
  Plan plan;
  for (const std::uint64_t seed : {0U, 1U}) {
    PlannedRun run;
    run.run = mlp_run("single", 1, seed);
    run.key = std::to_string(seed);
    plan.runs.push_back(run);
  }
  return plan;
}

}  // namespace

TEST_CASE("plain status prints one line per ended run") {
  const Plan plan = plan_of_two();
  std::ostringstream out;
  const auto status = plain_status(out);
  status->sweep_started(plan);
  status->run_started(plan.runs[0], 1);
  RunOutcome finished;
  finished.seconds = 4.21;
  finished.test_accuracy = 0.931;
  status->run_ended(plan.runs[0], finished);
  status->run_started(plan.runs[1], 3);
  RunOutcome failed;
  failed.reason = experiments::EndReason::failed;
  failed.seconds = 2;
  failed.first_error = "boom";
  failed.log = "/yard/rank-0.log";
  status->run_ended(plan.runs[1], failed);
  CHECK(out.str() ==
        "2 runs: 2 to run\n"
        "[1/2] mlp single seed 0 … finished in 4.2 s, test accuracy 93.1 %\n"
        "[2/2] mlp single seed 1 … failed after 2.0 s: boom\n"
        "        log: /yard/rank-0.log\n");
}

TEST_CASE("the text of a plan has the number of runs that finished before and the time of the others") {
  Plan plan = plan_of_two();
  plan.runs[0].state = PlanState::finished;
  plan.runs[1].expected_seconds = 200;
  CHECK(plan_text(plan) == "2 runs: 1 finished before, 1 to run, about 3 min 20 s");
}

TEST_CASE("a run that is left out this time is not counted as finished before") {
  Plan plan = plan_of_two();
  plan.runs[0].state = PlanState::left_out;
  CHECK(plan_text(plan) == "2 runs: 1 not selected, 1 to run");
}

TEST_CASE("times are written for people") {
  CHECK(clock_text(3.4) == "0:03");
  CHECK(clock_text(754) == "12:34");
  CHECK(clock_text(3723) == "1:02:03");
  CHECK(duration_text(0.04) == "0.0 s");
  CHECK(duration_text(59.96) == "1 min 0 s");
  CHECK(duration_text(7500) == "2 h 5 min");
}
