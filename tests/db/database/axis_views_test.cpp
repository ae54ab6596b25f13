// One column per axis that varies, in final_metrics, in task_final_metrics and in every export.
#include <algorithm>
#include <fstream>
#include <set>

#include <SQLiteCpp/SQLiteCpp.h>
#include <doctest/doctest.h>

#include "db/database/schema.h"
#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "db/queries/queries.h"
#include "experiments/protocol/seal.h"
#include "tests/db/support/yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;
using nlohmann::json;

namespace {

using Names = std::vector<std::string>;

Names columns_of(const Database& database, const std::string& view) {
  return select(database, "SELECT * FROM " + view).columns;
}

Names columns_after(const Database& database, const std::string& view, const std::string& last) {
  const Names all = columns_of(database, view);
  const auto at = std::find(all.begin(), all.end(), last);
  REQUIRE(at != all.end());
  return {at + 1, all.end()};
}

// single and ddp with one seed at each learning rate.
std::vector<experiments::Run> at_rates(const std::vector<double>& rates) {
  std::vector<experiments::Run> runs;
  for (const double rate : rates)
    for (const std::int64_t replicas : {1, 2}) {
      runs.push_back(make_run("mlp", replicas, 0));
      runs.back().optimizer.learning_rate = rate;
    }
  return runs;
}

json entry_of(const std::string& experiment, const std::vector<experiments::Run>& runs,
              const std::vector<std::string>& varied, const std::string& time) {
  json entry = run_entry(experiment, runs, time);
  entry["varied"] = varied;
  return entry;
}

void finish_all(Ingest& ingest, const std::vector<experiments::Run>& runs) {
  for (const experiments::Run& run : runs) finish(ingest, run, make_launch(run), {1, 1, 1});
}

// The columns and rows of one export.
std::pair<Names, std::vector<ExportRow>> exported(const Database& database, const std::string& what) {
  std::pair<Names, std::vector<ExportRow>> found;
  for (const ExportedView& view : exported_views())
    if (view.name == what)
      export_rows(
          database, view, "sweep", [&](const Names& names) { found.first = names; },
          [&](const ExportRow& row) {
            found.second.push_back(row);
            return true;
          });
  return found;
}

}  // namespace

TEST_CASE("final_metrics has a column for each varied axis, after its other columns") {
  Yard yard;
  const Names before = columns_of(yard.database, "final_metrics");
  CHECK(before.back() == "variant");
  const auto runs = at_rates({0.1, 0.05});
  yard.ingest.journal_entry(
      entry_of("sweep", runs, {"learning_rate", "strategy"}, "2026-11-20T08:00:00.000Z"));
  finish_all(yard.ingest, runs);
  Names expected = before;
  expected.emplace_back("learning_rate");
  CHECK(columns_of(yard.database, "final_metrics") == expected);
  CHECK(columns_after(yard.database, "task_final_metrics", "variant") == Names{"learning_rate"});
  CHECK(rows_of(yard.database,
                "SELECT strategy, learning_rate, variant, COUNT(*) FROM final_metrics GROUP BY 1, 2, 3") ==
        Names{R"(["ddp",0.05,"learning_rate 0.05",1])", R"(["ddp",0.1,"learning_rate 0.1",1])",
              R"(["single",0.05,"learning_rate 0.05",1])", R"(["single",0.1,"learning_rate 0.1",1])"});

  // Another experiment varies another axis: its column comes last.
  const auto batches = [] {
    auto two = at_rates({0.1});
    two[1] = two[0];
    two[1].global_batch = two[1].batch_size = 99;
    return two;
  }();
  yard.ingest.journal_entry(entry_of("batches", batches, {"batch"}, "2026-11-20T09:00:00.000Z"));
  CHECK(columns_after(yard.database, "final_metrics", "variant") == Names{"learning_rate", "batch"});
}

TEST_CASE("values that the command line set differently in two plans have a column too") {
  Yard yard;
  for (const double rate : {0.1, 0.05}) {
    const auto runs = at_rates({rate});
    yard.ingest.journal_entry(entry_of("sweep", runs, {"strategy"},
                                       "2026-11-20T08:00:00." + std::to_string(int(rate * 1000)) + "Z"));
    finish_all(yard.ingest, runs);
  }
  CHECK(columns_after(yard.database, "final_metrics", "variant") == Names{"learning_rate"});
}

TEST_CASE("every export has a column for each axis that the experiment varies") {
  Yard yard;
  const auto runs = at_rates({0.1, 0.05});
  yard.ingest.journal_entry(
      entry_of("sweep", runs, {"learning_rate", "strategy"}, "2026-11-20T08:00:00.000Z"));
  finish_all(yard.ingest, runs);
  for (const ExportedView& view : exported_views()) {
    CAPTURE(view.name);
    const auto [names, rows] = exported(yard.database, view.name);
    const auto at = std::find(names.begin(), names.end(), "learning_rate");
    REQUIRE(at != names.end());
    CHECK(std::count(names.begin(), names.end(), "learning_rate") == 1);
    std::set<double> rates;
    for (const ExportRow& row : rows)
      rates.insert(row.at(static_cast<std::size_t>(at - names.begin())).get<double>());
    CHECK(rates == std::set<double>{0.05, 0.1});
  }
}

TEST_CASE("an axis of any name becomes a column, and every other column keeps its meaning") {
  Yard yard;
  auto runs = at_rates({0.1});
  runs[1] = runs[0];
  std::int64_t width = 64;
  for (auto& run : runs) {
    run.hyperparameters["a \"b\" 'c'; DROP TABLE run; --"] = width;
    run.hyperparameters["Test_Accuracy"] = width;
    width *= 2;
  }
  yard.ingest.journal_entry(entry_of("sweep", runs, {"a \"b\" 'c'; DROP TABLE run; --", "Test_Accuracy"},
                                     "2026-11-20T08:00:00.000Z"));
  finish_all(yard.ingest, runs);
  CHECK(columns_after(yard.database, "final_metrics", "variant") ==
        Names{"a \"b\" 'c'; DROP TABLE run; --", "axis_Test_Accuracy"});
  CHECK(rows_of(yard.database,
                "SELECT \"a \"\"b\"\" 'c'; DROP TABLE run; --\", axis_test_accuracy FROM final_metrics") ==
        Names{"[128,128]", "[64,64]"});
  CHECK(exported(yard.database, "runs").second.size() == 2);
}

TEST_CASE("a rebuilt database has the same columns as one that was written during the runs") {
  Yard yard;
  std::ofstream journal(yard.folder / "journal.jsonl");
  const auto take = [&](const json& entry) {
    yard.ingest.journal_entry(entry);
    journal << experiments::sealed(entry.dump()) << "\n" << std::flush;
  };
  take(entry_of("sweep", at_rates({0.1, 0.05}), {"learning_rate"}, "2026-11-20T08:00:00.000Z"));
  auto longer = at_rates({0.1});
  longer[0].epochs = 7;
  take(entry_of("sweep", longer, {"strategy"}, "2026-11-20T09:00:00.000Z"));
  const FileCheck check = check_files(yard.folder.path(), &yard.database);
  CHECK(check.differences.empty());
  Database rebuilt = Database::open_temporary();
  replay(yard.folder.path(), rebuilt);
  for (const char* view : {"final_metrics", "task_final_metrics"}) {
    CHECK(columns_of(rebuilt, view) == columns_of(yard.database, view));
    CHECK(columns_after(rebuilt, view, "variant") == Names{"learning_rate", "epochs"});
  }
}

TEST_CASE("a database whose view lacks these columns gets them when it is next opened for writing") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  {
    Database database = Database::open_for_writing(file);
    Ingest ingest(database);
    ingest.journal_entry(
        entry_of("sweep", at_rates({0.1, 0.05}), {"learning_rate"}, "2026-11-20T08:00:00.000Z"));
  }
  SQLite::Database(file.string(), SQLite::OPEN_READWRITE)
      .exec("DROP VIEW final_metrics; CREATE VIEW final_metrics AS SELECT run_key FROM run");
  Database::open_for_writing(file);
  const Database reader = Database::open_read_only(file);
  CHECK(columns_after(reader, "final_metrics", "variant") == Names{"learning_rate"});
}
