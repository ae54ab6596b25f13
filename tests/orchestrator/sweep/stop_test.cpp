#include <doctest/doctest.h>

#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/patience.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

bool hangs(const SweepFixture& bench, int rank) {
  return pid_in(bench.attempt(0) / ("hanging-" + std::to_string(rank))) != 0;
}

}  // namespace

TEST_CASE("a stop ends the ranks, no other run is started, and the same command finishes the sweep later") {
  SweepFixture bench({mlp_run("ddp", 2, 0), mlp_run("ddp", 2, 1)});
  bench.journal();
  bench.on_message("", "hang");
  bench.status.on_progress = [&] {
    if (hangs(bench, 0) && hangs(bench, 1)) bench.stop = 1;
  };
  const auto result = bench.sweep();
  CHECK(result.interrupted);
  CHECK(result.failures.empty());
  CHECK(bench.status.events.size() == 2);  // one start, one end
  REQUIRE(bench.status.messages.size() == 1);
  CHECK(bench.status.messages[0] == "stopping: ending all runs (a second signal kills them)");
  CHECK(bench.status_of(0) == "interrupted");
  for (int rank = 0; rank < 2; ++rank)
    CHECK_FALSE(alive(pid_in(bench.attempt(0) / ("hanging-" + std::to_string(rank)))));

  bench.on_message("", "finish");
  bench.stop = 0;
  bench.status.on_progress = nullptr;
  CHECK(bench.sweep().finished == 2);
  CHECK(bench.status.events[2] == "start mlp ddp seed 0 2");
  CHECK(bench.status_of(0, 2) == "finished");
}

TEST_CASE("a rank that ignores SIGTERM is killed after the grace period") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.on_message("", "deaf");
  bench.status.on_progress = [&] {
    if (hangs(bench, 0)) bench.stop = 1;
  };
  CHECK(bench.sweep().interrupted);
  CHECK(record_types(bench.attempt(0) / "orchestrator.records.jsonl") ==
        std::vector<std::string>{"leased", "launched", "signalled", "signalled", "exited", "processor_use",
                                 "cause"});
}

TEST_CASE("a second stop kills at once") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.options.grace_seconds = 100 * tests::patience;
  bench.on_message("", "deaf");
  bench.status.on_progress = [&] {
    if (hangs(bench, 0)) bench.stop = 2;
  };
  CHECK(bench.sweep().interrupted);
}

TEST_CASE("a sweep that is stopped before it begins starts nothing") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.stop = 1;
  CHECK(bench.sweep().interrupted);
  CHECK(bench.status.events.empty());
}
