#include "orchestrator/plan/plan.h"

#include <doctest/doctest.h>

#include "tests/orchestrator/support/sweep_fixture.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

experiments::Experiment experiment_of(std::vector<experiments::Run> runs) {
  experiments::Experiment experiment;
  experiment.runs = std::move(runs);
  return experiment;
}

std::vector<Device> two_devices() {
  return core_devices({0, 1, 2, 3});
}

std::vector<std::string> labels(const Plan& plan, const std::vector<std::size_t>& order) {
  std::vector<std::string> result;
  for (const std::size_t i : order) result.push_back(experiments::label(plan.runs[i].run));
  return result;
}

}  // namespace

TEST_CASE("arms of a pair are run next to each other, whatever axis the file varies first") {
  std::vector<experiments::Run> runs;
  for (const char* strategy : {"single", "ddp", "mp"})
    for (std::uint64_t seed = 0; seed < 8; ++seed) runs.push_back(mlp_run(strategy, 1, seed));
  const auto plan = make_plan(experiment_of(std::move(runs)), two_devices(), {}, nullptr);
  const auto order = execution_order(plan);
  REQUIRE(order.size() == 24);
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(plan.runs[order[i]].run.seed == i / 3);
}

TEST_CASE("data_seed decides the order of the arms of a pair: it is repeatable, and no arm is always first") {
  std::vector<experiments::Run> runs;
  for (const char* strategy : {"single", "ddp"})
    for (std::uint64_t seed = 0; seed < 200; ++seed) runs.push_back(mlp_run(strategy, 1, seed));
  auto experiment = experiment_of(std::move(runs));
  const auto ordered = [&](std::uint64_t data_seed) {
    experiment.data_seed = data_seed;
    return make_plan(experiment, two_devices(), {}, nullptr).order;
  };
  const auto singles_first = [&](const std::vector<std::size_t>& order) {
    int first = 0;
    for (std::size_t i = 0; i < order.size(); i += 2) first += order[i] < 200 ? 1 : 0;
    return first;
  };
  CHECK(ordered(0) == ordered(0));
  CHECK(ordered(0) != ordered(1));
  // 200 fair coins show 60 to 140 heads, except once in 10^8 trials.
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    CHECK(singles_first(ordered(seed)) > 60);
    CHECK(singles_first(ordered(seed)) < 140);
  }
}

TEST_CASE("pairs are made along the compared axis, so arms that differ in another axis are apart") {
  std::vector<experiments::Run> runs;
  for (const std::int64_t epochs : {1, 2})
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      runs.push_back(mlp_run("single", 1, seed));
      runs.back().epochs = epochs;
      runs.back().axes["epochs"] = epochs;
    }
  auto experiment = experiment_of(std::move(runs));
  experiment.compare.push_back({});
  experiment.compare[0].axis = "epochs";
  const auto plan = make_plan(experiment, two_devices(), {}, nullptr);
  for (std::size_t i = 0; i < 4; ++i) CHECK(plan.runs[plan.order[i]].run.seed == i / 2);
}

TEST_CASE("the declared order is that of the file") {
  const auto plan = make_plan(experiment_of({mlp_run("single", 1, 0), mlp_run("single", 1, 1),
                                             mlp_run("ddp", 2, 0), mlp_run("ddp", 2, 1)}),
                              two_devices(), {}, nullptr, {.order = Order::declared});
  CHECK(execution_order(plan) == std::vector<std::size_t>{0, 1, 2, 3});
}

TEST_CASE("finished runs are not run again, and the other runs keep their places") {
  auto plan =
      make_plan(experiment_of({mlp_run("single", 1, 0), mlp_run("single", 1, 1), mlp_run("ddp", 2, 0)}),
                two_devices(), {}, nullptr);
  plan.runs[0].state = PlanState::finished;
  CHECK(plan.to_run() == 2);
  CHECK(labels(plan, execution_order(plan)) ==
        std::vector<std::string>{"mlp ddp seed 0", "mlp single seed 1"});
}

TEST_CASE("a run that finished in other circumstances is run again, unless it may be reused") {
  auto plan = make_plan(experiment_of({mlp_run("single", 1, 0), mlp_run("single", 1, 1)}), two_devices(), {},
                        nullptr);
  plan.runs[0].state = PlanState::done_elsewhere;
  CHECK(plan.to_run() == 2);
  plan.reuse = true;
  CHECK(labels(plan, execution_order(plan)) == std::vector<std::string>{"mlp single seed 1"});
}

TEST_CASE("the circumstances of a run have the variables of the sweep and of its strategy") {
  auto own = mlp_run("single", 1, 0);
  own.strategy.environment = {{"MKL_NUM_THREADS", "2"}, {"HOME", "/tmp"}};
  experiments::Circumstances machine;
  machine.environment = {{"MKL_NUM_THREADS", "8"}, {"OMP_PLACES", "cores"}};
  const auto plan = make_plan(experiment_of({own, mlp_run("ddp", 2, 0)}), two_devices(), machine, nullptr);
  using Variables = std::map<std::string, std::string>;
  CHECK(plan.runs[0].circumstances.environment ==
        Variables{{"MKL_NUM_THREADS", "2"}, {"OMP_PLACES", "cores"}});
  CHECK(plan.runs[1].circumstances.environment == machine.environment);
}

TEST_CASE("single has exactly the cores that one rank of ddp has") {
  const auto plan =
      make_plan(experiment_of({mlp_run("single", 1, 0), mlp_run("ddp", 2, 0)}), two_devices(), {}, nullptr);
  CHECK(plan.runs[0].devices[0].cores == plan.runs[1].devices[0].cores);
  CHECK(plan.runs[0].circumstances.threads_per_rank == 2);
  CHECK(plan.runs[1].circumstances.threads_per_rank == 2);
  CHECK_FALSE(plan.runs[1].devices_shared);
}

TEST_CASE("single with two threads has exactly the cores that one rank of ddp with two threads has") {
  auto single = mlp_run("single", 1, 0), ddp = mlp_run("ddp", 2, 0);
  single.threads = ddp.threads = 2;
  const auto plan = make_plan(experiment_of({single, ddp}), core_devices({0, 1, 2, 3, 4}), {}, nullptr);
  CHECK(plan.runs[0].devices[0].cores == std::vector<int>{0, 1});
  CHECK(plan.runs[1].devices[0].cores == std::vector<int>{0, 1});
  CHECK(plan.runs[1].devices[1].cores == std::vector<int>{2, 3});
  CHECK_FALSE(plan.runs[1].devices_shared);
  CHECK(plan.runs[0].circumstances.threads_per_rank == 2);
}

TEST_CASE("`devices = 2` leases at most two groups, wide enough for the rank with the most threads") {
  auto narrow = mlp_run("single", 1, 0), wide = mlp_run("single", 1, 1);
  narrow.threads = 1;
  wide.threads = 3;
  auto experiment = experiment_of({narrow, wide});
  experiment.machine.devices = 2;
  CHECK(make_plan(experiment, core_devices({0, 1, 2, 3, 4, 5, 6, 7}), {}, nullptr).devices.size() == 6);
  experiment.runs = {narrow};
  CHECK(make_plan(experiment, core_devices({0, 1, 2, 3, 4, 5, 6, 7}), {}, nullptr).devices.size() == 2);
}

TEST_CASE("if there are more ranks than devices, they share devices, and the circumstances record it") {
  const auto plan = make_plan(experiment_of({mlp_run("ddp", 4, 0)}), two_devices(), {}, nullptr);
  CHECK(plan.runs[0].devices_shared);
  CHECK(plan.runs[0].circumstances.ranks_per_device == 2);
}

TEST_CASE("the threads in the file are the threads of each rank") {
  auto run = mlp_run("single", 1, 0);
  run.threads = 1;
  const auto plan = make_plan(experiment_of({run}), two_devices(), {}, nullptr);
  CHECK(plan.runs[0].circumstances.threads_per_rank == 1);
}

TEST_CASE("the time of a plan is known as soon as the time of every kind of run is known") {
  auto plan = make_plan(experiment_of({mlp_run("single", 1, 0), mlp_run("ddp", 2, 0), mlp_run("ddp", 2, 1)}),
                        two_devices(), {}, nullptr);
  plan.runs[0].expected_seconds = 10;
  plan.runs[1].expected_seconds = 4;
  CHECK_FALSE(plan.expected_seconds());
  plan.runs[2].state = PlanState::finished;
  CHECK(plan.expected_seconds() == 14);
}
