// Runs that live without progress: found by the watchdog, ended, and reported with their last step.
#include <doctest/doctest.h>

#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

TEST_CASE("a run without progress fails, and the error names the rank that stopped first") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  bench.options.progress_timeout_seconds = 3;
  bench.on_message("0", "crawl once 1 hangs");  // 2 s of progress, then it hangs
  bench.on_message("1", "hang");
  CHECK(contains(bench.only_failure().first_error, "no progress for 3 s: rank 1 stalled first"));
  CHECK(bench.status_of(0) == "failed");
  for (int rank = 0; rank < 2; ++rank)
    CHECK_FALSE(alive(pid_in(bench.attempt(0) / ("hanging-" + std::to_string(rank)))));
}

TEST_CASE("a slow run with progress is not ended, however short the timeout is") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.options.progress_timeout_seconds = 3;
  bench.on_message("", "crawl-home");  // longer than the timeout, one step per 0.1 s
  CHECK(bench.sweep().finished == 1);
}

TEST_CASE("a rank that hangs in the parity check fails its run there, and the sweep continues") {
  SweepFixture bench({mlp_run("single", 1, 0), mlp_run("single", 1, 1)});
  bench.options.progress_timeout_seconds = 3;
  bench.on_message("", "hang-in-probe");  // only for seed 0
  const auto result = bench.sweep();
  CHECK(result.finished == 1);
  REQUIRE(result.failures.size() == 1);
  CHECK(result.failures[0].label == "mlp single seed 0");
  CHECK(result.failures[0].first_error ==
        "no progress for 3 s: rank 0 stalled first, in the parity check, step 1");
  CHECK(bench.status_of(0) == "failed");
}
