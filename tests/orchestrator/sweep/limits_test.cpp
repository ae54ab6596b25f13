// Ranks that write more than they may: their run fails with the reason, and nothing else does.
#include <fstream>

#include <doctest/doctest.h>

#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "experiments/protocol/record_lines.h"
#include "orchestrator/sweep/collector.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

struct Case {
  const char* rank;
  const char* failure;
};

// A rebuilt database equals the one of the sweep, and nothing counts as damage: the failure is known.
void check_files(const SweepFixture& bench) {
  const auto found = db::check_files(bench.yard.root(), &bench.database);
  for (const auto& difference : found.differences) FAIL_CHECK(difference);
  for (const auto& unreadable : found.unreadable) FAIL_CHECK(unreadable);
}

}  // namespace

TEST_CASE("a rank that exceeds a limit fails its run with file, line and reason, and the sweep continues") {
  for (const auto& [rank, failure] :
       {Case{"junk", "rank-0.records.jsonl:1003: more than 1000 lines are not records of this run"},
        Case{"endless", "rank-0.records.jsonl:3: the line is longer than 1 MiB"},
        Case{"junk-at-end", "rank-0.records.jsonl:1007: more than 1000 lines are not records of this run"}}) {
    CAPTURE(rank);
    SweepFixture bench({mlp_run("single", 1, 0)});
    bench.journal();
    bench.on_message("", rank);
    const std::string error = bench.only_failure().first_error;
    CHECK_MESSAGE(contains(error, failure), error);
    CHECK(bench.status_of(0) == "failed");
    CHECK(bench.status.messages.size() < 20);
    check_files(bench);
    bench.on_message("", "finish");
    CHECK(bench.sweep().finished == 1);
    CHECK(bench.status_of(0, 2) == "finished");
    check_files(bench);
  }
}

TEST_CASE("an attempt whose orchestrator was killed before it saw a limit exceeded has failed too") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.journal();
  experiments::Launch launch;
  launch.key = bench.key(0);
  launch.records = bench.attempt(0);
  launch.run = bench.experiment.runs[0];
  launch.created = experiments::utc_now();
  std::filesystem::create_directories(launch.records);
  experiments::write_launch(launch);
  {
    std::ofstream records(launch.records / "rank-0.records.jsonl");
    for (int line = 0; line < 2000; ++line) records << "x\n";
  }
  CHECK(bench.sweep().finished == 1);
  CHECK(bench.status_of(0) == "failed");
  REQUIRE_FALSE(bench.status.messages.empty());
  CHECK(contains(bench.status.messages.back(), "attempt 1 has failed: rank-0.records.jsonl:1001: more than"));
  check_files(bench);
}

TEST_CASE("54 MB of records are read in short steps") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.journal();
  bench.on_message("", "die");
  bench.sweep();
  const auto folder = bench.attempt(0);
  {
    std::ofstream records(folder / "rank-0.records.jsonl", std::ios::app);
    const std::string filler(100'000, 'x');
    for (int seq = 1; seq <= 540; ++seq)
      records << R"({"v":1,"run":")" << bench.key(0) << R"(","attempt":1,"rank":0,"seq":)" << seq
              << R"(,"type":"odd","time":"2026-11-20T09:30:12Z","elapsed_seconds":1,"x":")" << filler
              << "\"}\n";
  }
  db::Ingest ingest(bench.database);
  const auto launch = experiments::read_launch(folder / experiments::run_file_name);
  Collector collector({folder, bench.key(0), 1, 1}, experiments::to_json(launch), ingest);
  int steps = 0;
  do {
    collector.collect();
    ++steps;
  } while (!collector.drained());
  CHECK(steps > 100);
  CHECK(collector.over_limits().empty());
}
