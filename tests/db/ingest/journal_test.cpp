// Experiments, plans and removals.
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.h"
#include "db/ingest/ingest.h"
#include "db/queries/earlier_results.h"
#include "db/queries/queries.h"
#include "tests/db/support/yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;
using nlohmann::json;

TEST_CASE("the latest run entry is the plan, with its TOML, comparisons and varied axes") {
  Yard yard;
  const auto zero = make_run("mlp", 1, 0), one = make_run("mlp", 1, 1), two = make_run("mlp", 1, 2);
  yard.plan({one, zero});
  json later = run_entry("sweep", {two, one}, "2026-11-20T09:00:00.000Z");
  later["toml"] = "name = \"sweep\"\n# now with another seed\n";
  later["compare"][0]["alpha"] = 0.01;
  yard.ingest.journal_entry(later);
  const Plan plan = latest_plan(yard.database, "sweep");
  CHECK(plan.toml == "name = \"sweep\"\n# now with another seed\n");
  CHECK(plan.time == "2026-11-20T09:00:00.000Z");
  CHECK(plan.keys == std::vector<std::string>{key(two), key(one)});
  CHECK(plan.varied == std::vector<std::string>{"strategy", "seed"});
  REQUIRE(plan.compare.size() == 1);
  CHECK(plan.compare[0].alpha == 0.01);
  CHECK(plan.compare[0].margins.loss.ratio == 1.02);
}

TEST_CASE("runs come in the order of their first plan, and show whether the latest plan has them") {
  Yard yard;
  const auto zero = make_run("mlp", 1, 0), one = make_run("mlp", 1, 1), two = make_run("mlp", 1, 2);
  yard.plan({one, zero});
  yard.plan({two, one}, "2026-11-20T09:00:00.000Z");
  const auto runs = run_summaries(yard.database, "sweep");
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].run_key == key(one));
  CHECK(runs[1].run_key == key(zero));
  CHECK(runs[2].run_key == key(two));
  CHECK(runs[0].in_latest_plan);
  CHECK(!runs[1].in_latest_plan);
  CHECK(runs[0].updated == "2026-11-20T09:00:00.000Z");
  CHECK(runs[1].updated == "2026-11-20T08:00:00.000Z");
}

TEST_CASE("the history has every run entry with its rules, its runs and their labels, also removed runs") {
  Yard yard;
  const auto zero = make_run("mlp", 1, 0), one = make_run("mlp", 1, 1), two = make_run("mlp", 1, 2);
  yard.ingest.journal_entry(run_entry("sweep", {one, zero}, "2026-11-20T08:00:00.000Z"));
  json later = run_entry("sweep", {two, one}, "2026-11-20T09:00:00.000Z");
  later["compare"][0]["alpha"] = 0.01;
  yard.ingest.journal_entry(later);
  yard.ingest.journal_entry(testing::rm_entry({key(one)}, "2026-11-20T10:00:00.000Z"));
  const auto history = plan_history(yard.database, "sweep");
  REQUIRE(history.size() == 2);
  CHECK(history[0].time == "2026-11-20T08:00:00.000Z");
  CHECK(history[0].keys == std::vector<std::string>{key(one), key(zero)});
  CHECK(history[0].strategies == std::vector<std::string>{one.strategy.name, zero.strategy.name});
  CHECK(history[1].keys == std::vector<std::string>{key(two), key(one)});
  CHECK(history[0].compare.front().alpha == 0.05);
  CHECK(history[1].compare.front().alpha == 0.01);
}

TEST_CASE("experiments come in the order of their last run entry, and an unknown one is a user error") {
  Yard yard;
  yard.ingest.journal_entry(run_entry("a", {make_run("mlp", 1, 0)}, "2026-11-20T08:00:00.000Z"));
  yard.ingest.journal_entry(run_entry("b", {make_run("mlp", 1, 1)}, "2026-11-20T08:01:00.000Z"));
  CHECK(experiment_names(yard.database) == std::vector<std::string>{"a", "b"});
  yard.ingest.journal_entry(run_entry("a", {make_run("mlp", 1, 0)}, "2026-11-20T08:02:00.000Z"));
  CHECK(experiment_names(yard.database) == std::vector<std::string>{"b", "a"});
  CHECK_THROWS_WITH_AS(latest_plan(yard.database, "c"), doctest::Contains("\"c\""), UserError);
}

TEST_CASE("a run in two experiments has one row in each, with the label that each gives it") {
  Yard yard;
  const auto run = make_run("mlp", 2, 0);
  auto other = run;
  other.strategy.name = "two-cores";
  other.axes["strategy"] = std::string("two-cores");
  REQUIRE(key(run) == key(other));
  yard.ingest.journal_entry(run_entry("a", {run}, "2026-11-20T08:00:00.000Z"));
  yard.ingest.journal_entry(run_entry("b", {other}, "2026-11-20T08:01:00.000Z"));
  finish(yard.ingest, run, make_launch(run), {1, 2, 3});
  const auto runs = run_summaries(yard.database);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].experiment == "a");
  CHECK(runs[0].strategy == "ddp");
  CHECK(runs[1].experiment == "b");
  CHECK(runs[1].strategy == "two-cores");
  CHECK(std::get<std::string>(runs[0].axes.at("strategy")) == "ddp");
  CHECK(std::get<std::string>(runs[1].axes.at("strategy")) == "two-cores");
  CHECK(final_metrics(yard.database, "a").at(0).strategy == "ddp");
  CHECK(final_metrics(yard.database, "b").at(0).strategy == "two-cores");
  CHECK(epoch_averages(yard.database, "b").size() == 3);
  CHECK(epoch_replicas(yard.database, "b").size() == 6);
  CHECK(epochs_of_run(yard.database, key(run)).size() == 3);
  CHECK(rows_of(yard.database, "SELECT * FROM final_metrics").size() == 2);
}

TEST_CASE("every resolved value of a run can be queried by name, in its own type") {
  Yard yard;
  auto run = make_run("mlp", 2, 7);
  run.optimizer.learning_rate = 0.1;
  yard.plan({run});
  CHECK(run_summaries(yard.database).at(0).axes == experiments::values_by_name(run));
  CHECK(rows_of(yard.database, "SELECT value, typeof(value) FROM run_axis WHERE name = 'learning_rate'") ==
        std::vector<std::string>{R"([0.1,"real"])"});
  CHECK(rows_of(yard.database, "SELECT value, typeof(value) FROM run_axis WHERE name = 'seed'") ==
        std::vector<std::string>{R"([7,"integer"])"});
  CHECK(rows_of(yard.database, "SELECT value, typeof(value) FROM run_axis WHERE name = 'hidden'") ==
        std::vector<std::string>{R"(["[250,100]","text"])"});
}

TEST_CASE("a plan has the thresholds of its latest entry, or none if the file has none") {
  Yard yard;
  const auto run = make_run("mlp", 1, 0);
  json entry = run_entry("sweep", {run}, "2026-11-20T08:00:00.000Z");
  yard.ingest.journal_entry(entry);
  CHECK(latest_plan(yard.database, "sweep").expect.empty());
  const experiments::Expectation accuracy{"mlp", "test", "accuracy", 0.9, std::nullopt};
  const experiments::Expectation loss{"mlp", "validation", "loss", std::nullopt, 1.5};
  entry["time"] = "2026-11-20T09:00:00.000Z";
  entry["expect"] = {experiments::to_json(accuracy), experiments::to_json(loss)};
  yard.ingest.journal_entry(entry);
  CHECK(latest_plan(yard.database, "sweep").expect == std::vector{accuracy, loss});
}

TEST_CASE("stages, schedule and micro-batches of a run can be queried") {
  Yard yard;
  auto run = make_run("mlp", 2, 7);
  run.strategy.stages = 2;
  run.strategy.schedule = "1f1b";
  run.strategy.micro_batches = 4;
  run.strategy.boundaries = {3};
  yard.plan({run});
  CHECK(rows_of(yard.database,
                "SELECT name, value FROM run_axis WHERE name IN ('stages', 'schedule', 'micro_batches')") ==
        std::vector<std::string>{R"(["micro_batches",4])", R"(["schedule","1f1b"])", R"(["stages",2])"});
  CHECK(rows_of(yard.database, "SELECT stages, resolved->>'$.strategy.boundaries[0]' FROM run") ==
        std::vector<std::string>{"[2,3]"});
}

TEST_CASE("rm removes the results of runs with all their rows, and the runs stay in every plan") {
  Yard yard;
  const auto kept = make_run("mlp", 1, 0), gone = make_run("mlp", 1, 1);
  yard.ingest.journal_entry(run_entry("a", {gone, kept}, "2026-11-20T08:00:00.000Z"));
  yard.ingest.journal_entry(run_entry("b", {gone}, "2026-11-20T08:01:00.000Z"));
  const auto launch = make_launch(gone, 1, "2026-11-20T08:02:00.000Z");
  finish(yard.ingest, gone, launch, {1, 2, 3});
  yard.ingest.journal_entry(rm_entry({key(gone), "unknown"}, "2026-11-20T12:00:00.000Z"));
  CHECK(latest_plan(yard.database, "a").keys == std::vector<std::string>{key(gone), key(kept)});
  CHECK(latest_plan(yard.database, "b").keys == std::vector<std::string>{key(gone)});
  for (const db::RunSummary& run : run_summaries(yard.database)) CHECK(run.status == "planned");
  for (const std::string table :
       {"attempt", "record_log", "process", "epoch", "metric", "run_state", "run_final"}) {
    CAPTURE(table);
    CHECK(rows_of(yard.database, "SELECT * FROM " + table).empty());
  }
  SUBCASE("a record log from before the rm is refused") {
    CHECK(yard.ingest.run_file(experiments::to_json(launch)) == Accepted::refused);
    RecordLog zero(gone, 1, 0);
    CHECK(yard.ingest.record(zero.next("start", start_body(0, 1))) == Accepted::refused);
  }
  CHECK(yard.ingest.run_file(experiments::to_json(make_launch(gone, 2, "2026-11-20T13:00:01.000Z"))) ==
        Accepted::taken);
  CHECK(run_summaries(yard.database, "b").at(0).status == "running");
}

TEST_CASE("a removed result and one that is trained again keep their values in the journal") {
  Yard yard;
  const auto run = make_run("mlp", 1, 0);
  yard.ingest.journal_entry(run_entry("a", {run}, "2026-11-20T08:00:00.000Z"));
  finish(yard.ingest, run, make_launch(run, 1, "2026-11-20T08:02:00.000Z"), {1, 2, 3});
  const json results = results_of(yard.database, {key(run), "unknown"});
  REQUIRE(results.size() == 1);
  CHECK(results.at(key(run)).at("values").at("epoch_train_seconds") == 2.5);
  json removal = rm_entry({key(run)}, "2026-11-20T12:00:00.000Z");
  removal["results"] = results;
  yard.ingest.journal_entry(removal);
  CHECK(results_of(yard.database, {key(run)}).empty());
  finish(yard.ingest, run, make_launch(run, 2, "2026-11-20T13:00:00.000Z"), {1, 5, 6});
  yard.ingest.journal_entry({{"v", 1},
                             {"type", "retrain"},
                             {"time", "2026-11-20T14:00:00.000Z"},
                             {"results", results_of(yard.database, {key(run)})}});
  const auto earlier = earlier_results(yard.database, "a");
  REQUIRE(earlier.at(key(run)).size() == 2);
  const EarlierResult& first = earlier.at(key(run)).front();
  CHECK(first.attempt == 1);
  CHECK(first.launched == "2026-11-20T08:02:00.000Z");
  CHECK(first.values["epoch_train_seconds"] == 2.5);
  CHECK(std::isnan(first.values["epoch_energy_joules"]));
  CHECK(earlier.at(key(run)).back().values["epoch_train_seconds"] == 5.5);
  CHECK(run_summaries(yard.database, "a").at(0).status ==
        "finished");  // its results stay until it is trained
}

TEST_CASE("an rm that is replayed after the run was planned again removes nothing") {
  Yard yard;
  const auto run = make_run("mlp", 1, 0);
  const json first = run_entry("a", {run}, "2026-11-20T08:00:00.000Z");
  const json removal = rm_entry({key(run)}, "2026-11-20T09:00:00.000Z");
  const json second = run_entry("a", {run}, "2026-11-20T10:00:00.000Z");
  for (int pass = 0; pass < 2; ++pass)
    for (const json& entry : {first, removal, second}) yard.ingest.journal_entry(entry);
  CHECK(run_summaries(yard.database).size() == 1);
  CHECK(rows_of(yard.database, "SELECT * FROM journal").size() == 3);
}

TEST_CASE("a run without a journal entry is listed without an experiment") {
  Yard yard;
  const auto run = make_run("cnn", 1, 3);
  finish(yard.ingest, run, make_launch(run), {1, 2, 3});
  const auto runs = run_summaries(yard.database);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].experiment.empty());
  CHECK(runs[0].strategy == "single");
  CHECK(runs[0].status == "finished");
  CHECK(epochs_of_run(yard.database, key(run)).size() == 3);
  CHECK(rows_of(yard.database, "SELECT experiment, model, train_loss IS NULL FROM final_metrics") ==
        std::vector<std::string>{R"([null,"cnn",0])"});
}

TEST_CASE("unknown entry types and members are stored and have no effect") {
  Yard yard;
  yard.ingest.journal_entry(
      {{"v", 1}, {"type", "note"}, {"time", "2026-11-20T08:00:00.000Z"}, {"text", "hello"}});
  json entry = run_entry("a", {make_run("mlp", 1, 0)}, "2026-11-20T08:01:00.000Z");
  entry["final"] = true;
  yard.ingest.journal_entry(entry);
  CHECK(rows_of(yard.database, "SELECT type, extra FROM journal") ==
        std::vector<std::string>{R"(["note","{\"text\":\"hello\"}"])", R"(["run","{\"final\":true}"])"});
  CHECK(experiment_names(yard.database) == std::vector<std::string>{"a"});
}

TEST_CASE("an invalid entry is an error and leaves no rows behind") {
  Yard yard;
  json entry = run_entry("a", {make_run("mlp", 1, 0)}, "2026-11-20T08:01:00.000Z");
  entry["keys"].push_back("not planned");
  CHECK_THROWS_AS(yard.ingest.journal_entry(entry), InternalError);
  CHECK_THROWS_AS(yard.ingest.journal_entry({{"type", 7}}), InternalError);
  CHECK_THROWS_AS(yard.ingest.journal_entry(json::array()), InternalError);
  CHECK(rows_of(yard.database, "SELECT * FROM journal").empty());
  CHECK(rows_of(yard.database, "SELECT * FROM run").empty());
}

TEST_CASE("an entry with any member that a report or `resume` could not read is refused") {
  Yard yard;
  json entry = run_entry("a", {make_run("mlp", 1, 0)}, "2026-11-20T08:01:00.000Z");
  entry["expect"] =
      json::parse(R"([{"model": "mlp", "phase": "test", "metric": "accuracy", "at_least": 0.9}])");
  entry["asked"] = json::parse(R"({"folder": "/tmp", "set": ["epochs=3"]})");
  entry["published"] = json::parse(R"({"file": "p.toml", "text": "", "sources": []})");
  entry["data_profiles"] = json::array();
  for (const auto& [member, wrong] :
       std::vector<std::pair<const char*, const char*>>{{"varied", R"(["model", 7])"},
                                                        {"varied", R"([{"name": "model"}])"},
                                                        {"varied", R"("model")"},
                                                        {"compare", "7"},
                                                        {"compare", R"([{"axis": "strategy"}])"},
                                                        {"expect", R"([{"model": "mlp"}])"},
                                                        {"expect", R"({"model": "mlp"})"},
                                                        {"published", "[]"},
                                                        {"data_profiles", R"([{"dataset": "mnist"}])"},
                                                        {"asked", "[]"},
                                                        {"asked", R"({"folder": 7})"},
                                                        {"asked", R"({"set": [7]})"}}) {
    CAPTURE(member);
    CAPTURE(wrong);
    json changed = entry;
    changed[member] = json::parse(wrong);
    CHECK_THROWS_AS(yard.ingest.journal_entry(changed), InternalError);
    CHECK(rows_of(yard.database, "SELECT * FROM journal").empty());
  }
  yard.ingest.journal_entry(entry);
  const Plan plan = latest_plan(yard.database, "a");
  CHECK(plan.varied == std::vector<std::string>{"strategy", "seed"});
  CHECK(plan.expect.at(0).at_least == 0.9);
  CHECK(plan.asked == entry["asked"]);
  CHECK(plan.published->file == "p.toml");
  CHECK(plan.compare.at(0).axis == "strategy");
}
