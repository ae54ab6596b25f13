// Runs that live and get nowhere: found by their signs of life, ended, and told with the place.
#include <doctest/doctest.h>

#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"
#include "tests/support/patience.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

TEST_CASE("a run whose ranks live and get nowhere has failed, and the rank that stood still first is named") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  bench.options.progress_timeout_seconds = 3;
  bench.tell("0", "crawl once 1 hangs");  // 2 s of progress, then it waits for the other
  bench.tell("1", "hang");
  SweepResult result;
  CHECK(seconds_of([&] { result = bench.sweep(); }) < tests::patience);
  REQUIRE(result.failures.size() == 1);
  CHECK(contains(result.failures[0].first_error, "no progress for 3 s: rank 1 stood still first"));
  CHECK(bench.status_of(0) == "failed");
  for (int rank = 0; rank < 2; ++rank)
    CHECK_FALSE(alive(pid_in(bench.attempt(0) / ("hanging-" + std::to_string(rank)))));
}

TEST_CASE("a slow run that gets on is left alone, however short the patience") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.options.progress_timeout_seconds = 3;
  bench.tell("", "crawl-home");  // a step each 0.1 s for longer than that, then it finishes
  CHECK(bench.sweep().finished == 1);
}

TEST_CASE("a rank that hangs in the parity probe fails its run there, and the sweep goes on") {
  SweepFixture bench({mlp_run("single", 1, 0), mlp_run("single", 1, 1)});
  bench.options.progress_timeout_seconds = 3;
  bench.tell("", "hang-in-probe");  // seed 0 alone
  const auto result = bench.sweep();
  CHECK(result.finished == 1);
  REQUIRE(result.failures.size() == 1);
  CHECK(result.failures[0].label == "mlp single seed 0");
  CHECK(result.failures[0].first_error ==
        "no progress for 3 s: rank 0 stood still first, in the parity probe, step 1");
  CHECK(bench.status_of(0) == "failed");
}
