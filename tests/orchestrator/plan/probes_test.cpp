// Which runs do the parity check.
#include <doctest/doctest.h>

#include "db/queries/evidence.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"
#include "orchestrator/plan/plan.h"
#include "tests/orchestrator/support/sweep_fixture.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

// The runs that a sweep would start now with a parity check.
std::vector<std::string> probed(const SweepFixture& bench) {
  std::vector<std::string> labels;
  for (const PlannedRun& run : bench.plan().runs)
    if (run.probe) labels.push_back(experiments::label(run.run));
  return labels;
}

using Labels = std::vector<std::string>;

}  // namespace

TEST_CASE("the first seed of each arm in each cell does the parity check, at any position in the file") {
  std::vector<experiments::Run> runs{mlp_run("ddp", 2, 0), mlp_run("single", 1, 0), mlp_run("ddp", 2, 1),
                                     mlp_run("single", 1, 1)};
  experiments::Run other = mlp_run("ddp", 2, 1);
  other.global_batch = 64;
  other.axes["batch"] = std::int64_t{64};
  runs.push_back(other);
  const SweepFixture bench(runs);
  CHECK(probed(bench) == Labels{"mlp ddp seed 0", "mlp single seed 0", experiments::label(other)});
}

TEST_CASE("independent runs do the same work as single runs, and have no parity check") {
  experiments::Run run = mlp_run("independent", 2, 0);
  run.strategy.kind = "independent";
  CHECK(probed(SweepFixture({run})).empty());
}

TEST_CASE(
    "an arm has one parity check: run.json requests it from the first seed, and later seeds rely on it") {
  SweepFixture bench({mlp_run("single", 1, 0), mlp_run("single", 1, 1), mlp_run("ddp", 2, 0)});
  bench.journal();
  CHECK(bench.sweep().finished == 3);
  const auto asked = [&](std::size_t run) {
    return experiments::read_launch(bench.attempt(run) / experiments::run_file_name).probe;
  };
  CHECK(asked(0));
  CHECK_FALSE(asked(1));
  CHECK(asked(2));
  CHECK(db::probes(bench.database, "bench").size() == 3);  // one per rank

  Plan part = bench.plan();
  part.runs[0].state = PlanState::left_out;  // then its check may not be in the report
  part.runs[1].state = PlanState::to_run;
  choose_probes(part, bench.database);
  CHECK(part.runs[1].probe);

  bench.experiment.runs.push_back(mlp_run("single", 1, 2));
  bench.experiment.runs.push_back(mlp_run("ddp", 2, 2));
  CHECK(probed(bench).empty());
}

TEST_CASE("if the run with the parity check failed, the next run does the check") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.on_message("", "fail");
  bench.journal();
  CHECK(bench.sweep().failures.size() == 1);
  CHECK(probed(bench) == Labels{"mlp single seed 0"});
}
