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

TEST_CASE("if cells get seeds until they are decided, the number of runs is an upper limit that falls") {
  Plan plan = plan_of_two();
  plan.until_decided = true;
  for (PlannedRun& run : plan.runs) run.expected_seconds = 2;
  std::ostringstream out;
  const auto status = plain_status(out);
  status->sweep_started(plan);
  status->not_needed(1);
  status->run_ended(plan.runs[0], {});
  CHECK(out.str() ==
        "2 runs: at most 2 to run, about 4.0 s at most\n"
        "[1/≤1] mlp single seed 0 … finished in 0.0 s\n");
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
