#include <doctest/doctest.h>

#include "orchestrator/plan.h"
#include "sweep_bench.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

experiments::Experiment experiment_of(std::vector<experiments::Run> runs) {
  experiments::Experiment experiment;
  experiment.runs = std::move(runs);
  return experiment;
}

std::vector<Device> two_devices() {
  return divide_cores({0, 1, 2, 3}, 2);
}

std::vector<std::string> labels(const Plan& plan, const std::vector<std::size_t>& order) {
  std::vector<std::string> result;
  for (const std::size_t i : order) result.push_back(experiments::label(plan.runs[i].run));
  return result;
}

}  // namespace

TEST_CASE("arms of the same seed are run next to each other, whatever axis the file varies first") {
  const auto plan = make_plan(experiment_of({mlp_run("single", 1, 0), mlp_run("single", 1, 1),
                                             mlp_run("ddp", 2, 0), mlp_run("ddp", 2, 1)}),
                              two_devices(), {}, nullptr);
  CHECK(labels(plan, execution_order(plan)) == std::vector<std::string>{"mlp single seed 0", "mlp ddp seed 0",
                                                                        "mlp single seed 1",
                                                                        "mlp ddp seed 1"});
}

TEST_CASE("finished runs are not run again, but keep their arms where they were") {
  auto plan =
      make_plan(experiment_of({mlp_run("single", 1, 0), mlp_run("single", 1, 1), mlp_run("ddp", 2, 0)}),
                two_devices(), {}, nullptr);
  plan.runs[0].state = PlanState::finished;
  CHECK(plan.to_run() == 2);
  CHECK(labels(plan, execution_order(plan)) ==
        std::vector<std::string>{"mlp ddp seed 0", "mlp single seed 1"});
}

TEST_CASE("single has exactly the cores that one rank of ddp has") {
  const auto plan =
      make_plan(experiment_of({mlp_run("single", 1, 0), mlp_run("ddp", 2, 0)}), two_devices(), {}, nullptr);
  CHECK(plan.runs[0].devices[0].cores == plan.runs[1].devices[0].cores);
  CHECK(plan.runs[0].circumstances.threads_per_rank == 2);
  CHECK(plan.runs[1].circumstances.threads_per_rank == 2);
  CHECK_FALSE(plan.runs[1].devices_shared);
}

TEST_CASE("more ranks than devices share them, and the circumstances say so") {
  const auto plan = make_plan(experiment_of({mlp_run("ddp", 4, 0)}), two_devices(), {}, nullptr);
  CHECK(plan.runs[0].devices_shared);
  CHECK(plan.runs[0].circumstances.ranks_per_device == 2);
}

TEST_CASE("threads that the file asks for are the threads of a rank") {
  auto run = mlp_run("single", 1, 0);
  run.threads = 1;
  const auto plan = make_plan(experiment_of({run}), two_devices(), {}, nullptr);
  CHECK(plan.runs[0].circumstances.threads_per_rank == 1);
}

TEST_CASE("the time of a plan is known once every kind of run is") {
  auto plan = make_plan(experiment_of({mlp_run("single", 1, 0), mlp_run("ddp", 2, 0), mlp_run("ddp", 2, 1)}),
                        two_devices(), {}, nullptr);
  plan.runs[0].expected_seconds = 10;
  plan.runs[1].expected_seconds = 4;
  CHECK_FALSE(plan.expected_seconds());
  plan.runs[2].state = PlanState::finished;
  CHECK(plan.expected_seconds() == 14);
}
