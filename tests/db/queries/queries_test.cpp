// Queries of the orchestrator and the command line.
#include "db/queries/queries.h"

#include <set>

#include <doctest/doctest.h>

#include "tests/db/support/yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;

TEST_CASE("a run is finished here under the same circumstances, elsewhere under others, or not at all") {
  Yard yard;
  const auto here = make_run("mlp", 1, 0), elsewhere = make_run("mlp", 1, 1), both = make_run("mlp", 1, 2),
             running = make_run("mlp", 1, 3), failed = make_run("mlp", 1, 4);
  auto other = make_launch(elsewhere);
  other.circumstances.host = "another host";
  finish(yard.ingest, here, make_launch(here), {1, 1, 1});
  finish(yard.ingest, elsewhere, other, {1, 1, 1});
  finish(yard.ingest, both, make_launch(both, 1), {1, 1, 1});
  other = make_launch(both, 2);
  other.circumstances.host = "another host";
  finish(yard.ingest, both, other, {1, 1, 1});
  yard.ingest.run_file(experiments::to_json(make_launch(running)));
  yard.ingest.run_file(experiments::to_json(make_launch(failed)));
  RecordLog orchestrator(failed, 1, std::nullopt);
  yard.ingest.record(orchestrator.next("cause", {{"outcome", "failed"}}));

  const std::string hash = experiments::circumstances_hash(make_launch(here).circumstances);
  std::map<std::string, std::string> asked{{"never heard of", hash}};
  for (const auto* run : {&here, &elsewhere, &both, &running, &failed}) asked[key(*run)] = hash;
  const Finished finished = finished_runs(yard.database, asked);
  CHECK(std::set<std::string>(finished.here.begin(), finished.here.end()) ==
        std::set<std::string>{key(here)});
  CHECK(std::set<std::string>(finished.elsewhere.begin(), finished.elsewhere.end()) ==
        std::set<std::string>{key(elsewhere), key(both)});
}

TEST_CASE("a launch that was interrupted does not stand for the finished attempt that counts") {
  Yard yard;
  const auto run = make_run("mlp", 1, 0);
  yard.plan({run});
  auto launch = make_launch(run);
  launch.circumstances.environment = {{"ATEN_CPU_CAPABILITY", "default"}};
  finish(yard.ingest, run, launch, {1, 1, 1});
  yard.ingest.run_file(experiments::to_json(make_launch(run, 2)));
  const auto launches = effective_launches(yard.database, "sweep");
  REQUIRE(launches.size() == 1);
  CHECK(launches.at(key(run)).at("attempt") == 1);
  CHECK(launches.at(key(run)).at("circumstances").contains("environment"));
}

TEST_CASE("a prefix finds all keys that begin with it, and `last` finds the run with the newest record") {
  Yard yard;
  CHECK(keys_with_prefix(yard.database, "last").empty());
  const auto first = make_run("mlp", 1, 0), second = make_run("mlp", 1, 1), planned = make_run("mlp", 1, 2);
  yard.plan({first, second, planned}, "2026-11-20T23:00:00.000Z");
  CHECK(keys_with_prefix(yard.database, "last").empty());
  yard.ingest.run_file(experiments::to_json(make_launch(second, 1)));
  CHECK(keys_with_prefix(yard.database, "last") == std::vector<std::string>{key(second)});
  finish(yard.ingest, first, make_launch(first, 1), {1, 1, 1});
  CHECK(keys_with_prefix(yard.database, "last") == std::vector<std::string>{key(first)});
  finish(yard.ingest, second, make_launch(second, 2), {1, 1, 1});  // one hour later
  CHECK(keys_with_prefix(yard.database, "last") == std::vector<std::string>{key(second)});

  CHECK(keys_with_prefix(yard.database, key(planned)) == std::vector<std::string>{key(planned)});
  CHECK(keys_with_prefix(yard.database, key(planned).substr(0, 6)) == std::vector<std::string>{key(planned)});
  CHECK(keys_with_prefix(yard.database, "").size() == 3);
  CHECK(keys_with_prefix(yard.database, "%").empty());
  CHECK(keys_with_prefix(yard.database, key(planned) + "0").empty());
}

TEST_CASE("attempts come oldest first, each with its own outcome and run.json") {
  Yard yard;
  const auto run = make_run("mlp", 2, 0);
  for (int attempt = 1; attempt <= 10; ++attempt) {
    yard.ingest.run_file(experiments::to_json(
        make_launch(run, attempt, "2026-11-20T09:00:" + std::to_string(10 + attempt) + ".000Z")));
    if (attempt == 10) break;
    RecordLog orchestrator(run, attempt, std::nullopt);
    yard.ingest.record(orchestrator.next("cause", {{"outcome", attempt == 2 ? "interrupted" : "failed"},
                                                   {"error", "error " + std::to_string(attempt)}}));
  }
  const auto attempts = attempts_of_run(yard.database, key(run));
  REQUIRE(attempts.size() == 10);
  CHECK(attempts[0].status == "failed");
  CHECK(attempts[1].status == "interrupted");
  CHECK(attempts[1].cause == "error 2");
  CHECK(attempts[9].status == "running");
  CHECK(attempts[9].cause.empty());
  CHECK(attempts[9].started == "2026-11-20T09:00:20.000Z");
  CHECK(attempts[9].directory == "/yard/runs/" + key(run) + "/attempt-10");
  CHECK(experiments::launch_from_json(attempts[9].launch).run == run);
  CHECK(attempts_of_run(yard.database, "unknown").empty());
}

TEST_CASE("the expected seconds of a run are the median over finished attempts of its kind") {
  Yard yard;
  const double totals[] = {4, 100, 7, 5};
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto run = make_run("mlp", 1, seed, 5);
    yard.ingest.run_file(experiments::to_json(make_launch(run)));
    RecordLog zero(run, 1, 0);
    record_epochs(yard.ingest, zero, 5);
    yard.ingest.record(zero.next("end", end_body("finished", totals[seed])));
  }
  const auto longer = make_run("mlp", 2, 0, 20), running = make_run("cnn", 1, 0, 5);
  finish(yard.ingest, longer, make_launch(longer), std::vector<double>(20, 0.5));
  yard.ingest.run_file(experiments::to_json(make_launch(running)));
  auto tried_out = make_run("mlp", 1, 9, 5);  // not counted for runs with all training samples
  tried_out.data.train_samples = 100;
  yard.ingest.run_file(experiments::to_json(make_launch(tried_out)));
  RecordLog zero(tried_out, 1, 0);
  record_epochs(yard.ingest, zero, 5);
  yard.ingest.record(zero.next("end", end_body("finished", 0.2)));
  CHECK(median_run_seconds(yard.database) == std::map<std::string, double>{{"mlp single 5 mnist all", 6},
                                                                           {"mlp ddp 20 mnist all", 13.5},
                                                                           {"mlp single 5 mnist 100", 0.2}});
}

TEST_CASE("a summary has what the file requested and what the records say") {
  Yard yard;
  const auto run = make_run("mlp", 2, 7, 4);
  yard.plan({run});
  finish(yard.ingest, run, make_launch(run), {3, 2, 1, 1});
  const RunSummary summary = run_summaries(yard.database, "sweep").at(0);
  CHECK(summary.run_key == key(run));
  CHECK(summary.experiment == "sweep");
  CHECK(summary.model == "mlp");
  CHECK(summary.dataset == "mnist");
  CHECK(summary.data_source == "synthetic-digits");
  CHECK(summary.strategy == "ddp");
  CHECK(summary.replicas == 2);
  CHECK(summary.stages == 1);
  CHECK(summary.seed == 7);
  CHECK(summary.status == "finished");
  CHECK(summary.epochs == 4);
  CHECK(summary.epochs_done == 4);
  CHECK(summary.attempts == 1);
  CHECK(summary.total_train_seconds == 3 + 2 + 1 + 1);
  CHECK(summary.total_seconds == 13.5);
  CHECK(summary.circumstances_hash == experiments::circumstances_hash(make_launch(run).circumstances));
  CHECK(summary.updated == "2026-11-20T11:00:06.000Z");  // the seventh record
  CHECK(run_summaries(yard.database, "another").empty());
}
