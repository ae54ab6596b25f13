// Runs with several replicas and stages: devices of ranks, progress, and ends.
#include <doctest/doctest.h>

#include "experiments/protocol/launch.h"
#include "tests/orchestrator/support/sweep_fixture.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

TEST_CASE("four ranks on two devices train as a mesh, and their times count") {
  SweepFixture bench({mesh_run(0)});
  if (!have_two_cores()) return;
  bench.devices.resize(2);
  bench.journal();
  const std::string first = bench.devices[0].name, second = bench.devices[1].name;
  CHECK(bench.sweep().finished == 1);
  const auto launch = experiments::read_launch(bench.attempt(0) / "run.json");
  CHECK(launch.devices == std::vector<std::string>{first, second, second, first});
  CHECK(launch.devices_shared);
  CHECK(launch.circumstances.ranks_per_device == 2);
  CHECK(launch.run.strategy.boundaries == std::vector<std::int64_t>{2});
  const auto finals = db::final_metrics(bench.database, "bench");
  REQUIRE(finals.size() == 1);
  CHECK((finals[0].times_count || finals[0].times_problem.starts_with("other processes")));
  CHECK(finals[0]["test_accuracy"] == doctest::Approx(0.9));       // of both last stages, 9 of 10 each
  CHECK(db::epoch_replicas(bench.database, "bench").size() == 4);  // two epochs with two replicas each
  CHECK(*bench.status.outcomes["mlp mp-ddp seed 0"].test_accuracy == doctest::Approx(0.9));
}

TEST_CASE("the progress of a run with stages is that of a last stage, because other stages have no loss") {
  SweepFixture bench({mesh_run(0)});
  bench.on_message("", "slow");
  CHECK(bench.sweep().finished == 1);
  REQUIRE_FALSE(bench.status.progress.empty());
  const auto& last = bench.status.progress.back();
  CHECK(last.step == 3);
  CHECK(last.loss == 0.5);
}

TEST_CASE("a stage that dies ends the other ranks of its mesh, and is named as the cause") {
  for (const std::string stage : {"1", "2"}) {
    SweepFixture bench({mesh_run(0)});
    bench.on_message("", "hang");
    bench.on_message(stage, "die");
    const auto failure = bench.only_failure();
    CHECK(failure.first_error == "RuntimeError: the cat sat on the keyboard");
    CHECK(failure.log == (bench.attempt(0) / ("rank-" + stage + ".log")).string());
    for (int rank = 0; rank < 4; ++rank) {
      const int pid = pid_in(bench.attempt(0) / ("hanging-" + std::to_string(rank)));
      CHECK((pid == 0 || !alive(pid)));
    }
  }
}

TEST_CASE("a mesh has not finished if one rank exits without an `end` record") {
  SweepFixture bench({mesh_run(0)});
  bench.on_message("3", "leave");
  CHECK(bench.only_failure().first_error == "rank 3 ended without reporting that it finished");
  CHECK(bench.status_of(0) == "failed");
}

TEST_CASE("arms of a pair are next to each other, even if the strategy sets batch and schedule") {
  std::vector<experiments::Run> runs{mlp_run("single", 1, 0), mlp_run("single", 1, 1), mesh_run(0),
                                     mesh_run(1)};
  for (auto* run : {&runs[2], &runs[3]}) {
    run->batch_per = "global";
    run->global_batch = 256;
    run->axes["micro_batches"] = std::int64_t{4};
  }
  SweepFixture bench(runs);
  CHECK(execution_order(bench.plan()) == std::vector<std::size_t>{0, 2, 1, 3});
}
