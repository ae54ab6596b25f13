// db/README.md is part of the contract: its queries run, and it describes the whole schema.

#include <SQLiteCpp/Database.h>
#include <doctest/doctest.h>

#include "db/ingest/ingest.h"
#include "db/queries/queries.h"
#include "tests/db/support/yard.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard::db;
using namespace trainyard::db::testing;
namespace experiments = trainyard::experiments;

namespace {

std::string readme() {
  return tests::read_text(std::string(TRAINYARD_SOURCE_DIR) + "/db/README.md");
}

// The contents of all ```sql blocks.
std::vector<std::string> queries(const std::string& text) {
  static const std::string fence = "```sql\n";
  std::vector<std::string> found;
  for (std::size_t begin = text.find(fence); begin != std::string::npos; begin = text.find(fence, begin)) {
    begin += fence.size();
    found.push_back(text.substr(begin, text.find("```", begin) - begin));
  }
  return found;
}

// A translation and a reconstruction on two stages. The last rank writes all metrics.
void fill_tasks(Ingest& ingest) {
  for (const std::string model : {"a translator", "an autoencoder"}) {
    auto run = make_run(model, 1, 0, 1);
    run.strategy.stages = 2;
    ingest.journal_entry(run_entry("tasks of " + model, {run}, "2026-11-20T08:00:00.000Z"));
    ingest.run_file(experiments::to_json(make_launch(run)));
    for (int rank = 0; rank < 2; ++rank) {
      RecordLog log(run, 1, rank);
      std::vector<nlohmann::json> train, test;
      if (rank == 1) {
        train = {metric("train", "loss", 40, 80), metric("validation", "loss", 40, 80)};
        test = {metric("test", "loss", 40, 80)};
      }
      ingest.record(log.next("epoch", epoch_body(1, 1, 1, train)));
      ingest.record(log.next("test", {{"seconds", 0.5}, {"metrics", test}}));
      ingest.record(log.next("end", end_body("finished", 6)));
    }
  }
}

// The experiment "six models" with single and ddp over three seeds. One run failed, with a warning and a
// damaged record log, and one has an attempt under other circumstances.
void fill(Database& database) {
  Ingest ingest(database);
  std::vector<experiments::Run> runs;
  for (const std::string model : {"mlp", "cnn"})
    for (const std::int64_t replicas : {1, 2})
      for (std::uint64_t seed = 0; seed < 3; ++seed) runs.push_back(make_run(model, replicas, seed));
  ingest.journal_entry(run_entry("six models", runs, "2026-11-20T08:00:00.000Z"));
  const auto failed = runs.back();
  runs.pop_back();
  for (const auto& run : runs) {
    const double scale = run.strategy.replicas == 2 ? 0.5 : 1.0;
    finish(ingest, run, make_launch(run), {3 * scale, 2 * scale, 1.5 * scale});
  }
  fill_tasks(ingest);
  database.connection().exec("UPDATE run SET task = 'translation' WHERE model = 'a translator'");
  database.connection().exec("UPDATE run SET task = 'reconstruction' WHERE model = 'an autoencoder'");
  auto elsewhere = make_launch(runs[0], 2);
  elsewhere.circumstances.host = "another host";
  finish(ingest, runs[0], elsewhere, {1, 1, 1});
  ingest.run_file(experiments::to_json(make_launch(failed)));
  RecordLog zero(failed, 1, 0), orchestrator(failed, 1, std::nullopt);
  ingest.record(zero.next("message", {{"level", "warning"}, {"text", "the loss rises"}}));
  zero.seq = 5;
  ingest.record(zero.next("end", end_body("failed", 1)));
  ingest.record(orchestrator.next(
      "cause", {{"outcome", "failed"}, {"of_rank", 0}, {"error", "out of memory"}, {"log", "rank-0.log"}}));
}

}  // namespace

TEST_CASE("every query of the README runs and returns rows") {
  const TemporaryFolder folder;
  Database writer = Database::open_for_writing(folder / "results.db");
  fill(writer);
  const Database reader = Database::open_read_only(folder / "results.db");
  const auto all = queries(readme());
  CHECK(all.size() == 13);
  for (const std::string& query : all) {
    CAPTURE(query);
    const ResultTable table = select(reader, query);
    CHECK(!table.rows.empty());
  }
}

TEST_CASE("the README describes every table, view and column") {
  const TemporaryFolder folder;
  const Database database = Database::open_for_writing(folder / "results.db");
  const std::string text = readme();
  for (const char* type : {"table", "view"})
    for (const std::string& name : names_of(database, type)) {
      CAPTURE(name);
      const std::size_t begin = text.find("\n#### " + name + "\n");
      REQUIRE(begin != std::string::npos);
      const std::string section = text.substr(begin, text.find("\n#", begin + 1) - begin);
      for (const std::string& column : select(database, "SELECT * FROM " + name).columns) {
        CAPTURE(column);
        CHECK(section.find("`" + column + "`") != std::string::npos);
      }
    }
}
