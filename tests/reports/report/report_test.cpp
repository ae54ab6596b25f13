// Reports from a real database, filled as an orchestrator fills it.
#include "reports/report/report.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include <doctest/doctest.h>

#include "base/error.h"
#include "db/ingest/ingest.h"
#include "reports/content/content.h"
#include "reports/report/page.h"
#include "reports/results/sanity_checks.h"
#include "tests/db/support/yard.h"
#include "tests/reports/support/made_results.h"

namespace trainyard::reports {
namespace {

using db::testing::finish;
using db::testing::make_launch;
using db::testing::make_run;
using db::testing::run_entry;
using db::testing::TemporaryFolder;

// Runs of mlp with single and ddp and 3 seeds, in the journal as "demo". All but the last `open` ones are
// finished.
db::Database filled(const TemporaryFolder& folder, std::size_t open = 0) {
  db::Database database = db::Database::open_for_writing(folder / "results.db");
  std::vector<experiments::Run> runs;
  for (const std::int64_t replicas : {1, 2}) {
    for (const std::uint64_t seed : {0, 1, 2}) runs.push_back(make_run("mlp", replicas, seed));
  }
  db::Ingest ingest(database);
  nlohmann::json entry = run_entry("demo", runs, "2026-11-20T08:00:00.000Z");
  entry["compare"][0]["differs"] = {"samples"};  // rank r of `finish` has r + 1 times the samples of rank 0
  ingest.journal_entry(entry);
  for (std::size_t i = 0; i + open < runs.size(); ++i) {
    const double seconds =
        (runs[i].strategy.replicas == 2 ? 1.0 : 2.0) + 0.01 * static_cast<double>(runs[i].seed);
    experiments::Launch launch = make_launch(runs[i]);
    for (std::size_t rank = 0; rank < launch.devices.size(); ++rank) {
      launch.devices[rank] = "cpu:" + std::to_string(rank);
      launch.cores[rank] = {static_cast<int>(rank)};
    }
    finish(ingest, runs[i], launch, {seconds, seconds, seconds});
  }
  return database;
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

TEST_CASE("a report has a page with figures as SVG and PNG, and its bytes are reproducible") {
  const TemporaryFolder folder;
  const db::Database database = filled(folder);
  const std::vector<std::filesystem::path> written =
      write_report(compose(gather(database, "demo")), folder / "report");
  REQUIRE(written.size() >= 13);  // the page and six panels in two formats
  CHECK(written.front() == folder / "report" / "index.html");
  CHECK(std::filesystem::exists(folder / "report" / "figures" / "mlp-validation-loss.svg"));
  CHECK(std::filesystem::exists(folder / "report" / "figures" / "mlp-validation-loss.png"));
  const std::vector<std::filesystem::path> again =
      write_report(compose(gather(database, "demo")), folder / "again");
  REQUIRE(again.size() == written.size());
  for (std::size_t i = 0; i < written.size(); ++i) CHECK(bytes_of(written[i]) == bytes_of(again[i]));
}

TEST_CASE("every format writes its files, and the bytes are reproducible") {
  const TemporaryFolder folder;
  const db::Database database = filled(folder);
  std::set<std::string> all;
  for (const Format& format : report_formats()) all.insert(format.name);
  const std::vector<std::filesystem::path> written =
      write_report(compose(gather(database, "demo")), folder / "report", all);
  for (const char* file : {"index.html", "report.md", "tables/verdicts.tex", "tables/effects.tex",
                           "tables/verdicts.csv", "tables/results.tex", "tables/verdicts-two-column.tex",
                           "tables/results.csv", "tables/runs.csv", "figures/speed-up.pdf",
                           "figures/speed-up.csv", "figures/speed-up.png", "figures/effects-strategy.svg"}) {
    CHECK(std::ranges::find(written, folder / "report" / file) != written.end());
  }
  const std::vector<std::filesystem::path> again =
      write_report(compose(gather(database, "demo")), folder / "again", all);
  REQUIRE(again.size() == written.size());
  for (std::size_t i = 0; i < written.size(); ++i) CHECK(bytes_of(written[i]) == bytes_of(again[i]));
  CHECK(bytes_of(folder / "report/report.md").find("![Effects against single](") != std::string::npos);
  CHECK(bytes_of(folder / "report/figures/effects-strategy.svg").find("<title>Effects") != std::string::npos);
  const std::string pdf = bytes_of(folder / "report" / "figures/speed-up.pdf");
  CHECK(pdf.starts_with("%PDF-"));
  // The date of the last record. Cairo 1.16 omits the "D:" before it.
  const std::size_t date = pdf.find("/CreationDate (");
  REQUIRE(date != std::string::npos);
  CHECK(pdf.substr(date, 40).find("20261120") != std::string::npos);
  const std::string table = bytes_of(folder / "report" / "tables/verdicts.tex");
  CHECK(table.find("\\toprule") != std::string::npos);
  CHECK(table.find("improves (") != std::string::npos);
}

TEST_CASE("thresholds come from the journal, and a run that misses one is named with the expected value") {
  const TemporaryFolder folder;
  db::Database database = filled(folder);
  CHECK(missed_expectations(check_expectations(gather(database, "demo"))).empty());
  std::vector<experiments::Run> runs{make_run("mlp", 1, 0), make_run("mlp", 2, 0)};
  nlohmann::json entry = run_entry("demo", runs, "2026-11-20T12:00:00.000Z");
  entry["expect"] = {
      experiments::to_json(experiments::Expectation{"mlp", "test", "accuracy", 0.9, std::nullopt}),
      experiments::to_json(experiments::Expectation{"mlp", "test", "loss", std::nullopt, 0.25})};
  db::Ingest(database).journal_entry(entry);
  const std::vector<std::string> missed = missed_expectations(check_expectations(gather(database, "demo")));
  REQUIRE(missed.size() == 2);  // both runs have loss 0.3 and accuracy 0.9
  CHECK(missed[0].starts_with("mlp single seed 0 (" + experiments::run_key(runs[0])));
  CHECK(missed[0].ends_with("has test_loss 0.3000, expected of mlp: test_loss <= 0.25"));
}

TEST_CASE("published numbers come from the journal, and the figures label them as published") {
  const TemporaryFolder folder;
  db::Database database = filled(folder);
  nlohmann::json entry =
      run_entry("demo", {make_run("mlp", 1, 0), make_run("mlp", 2, 0)}, "2026-11-20T12:00:00.000Z");
  experiments::Published published{
      "p.toml", "", {{"paper", {{"single", "one card"}, {"ddp", "two others"}}, {}}}};
  published.sources.front().series = {{"mlp", "single", "train_accuracy", {{1, 0.7}, {3, 0.76}}},
                                      {"cnn", "single", "train_accuracy", {{1, 0.1}, {3, 0.2}}}};
  entry["published"] = experiments::to_json(published);
  db::Ingest(database).journal_entry(entry);
  const ReportData data = gather(database, "demo");
  const Content content = compose(data);
  const Figure& figure = content.figures.front().panels.front();
  const std::vector<Guide>& guides = std::get<Lines>(figure.picture).guides;
  REQUIRE(guides.size() == 1);
  CHECK(guides.front().label == "published single");
  CHECK(guides.front().points == std::vector<std::pair<double, double>>{{1, 70}, {3, 76}});
  CHECK(figure.caption.find("paper") != std::string::npos);
  CHECK(page_html(content).find("Its arms ran on different hardware") != std::string::npos);
}

TEST_CASE("only the requested formats are written") {
  const TemporaryFolder folder;
  const db::Database database = filled(folder);
  CHECK(write_report(compose(gather(database, "demo")), folder / "report", {"html"}).size() == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "report" / "figures"));
}

TEST_CASE("the query of each figure runs and returns one row per number in it") {
  const TemporaryFolder folder;
  const db::Database database = filled(folder);
  const ReportData data = gather(database, "demo");
  const Content content = compose(data);
  for (const Figure* figure : all_figures(content)) {
    if (!figure->missing.empty()) continue;
    CAPTURE(figure->slug);
    const std::size_t rows = db::select(database, figure->sql).rows.size();
    const bool by_epoch = figure->slug.starts_with("mlp-");
    // 6 runs of 3 epochs for the averages, and 3 runs with one rank and 3 with two for the ranks.
    CHECK(rows == (by_epoch ? 6 * 3 + (3 + 6) * 3 : 6));
  }
}

TEST_CASE("the points of a study are the means of the rows that its query returns") {
  const TemporaryFolder folder;
  db::Database database = db::Database::open_for_writing(folder / "results.db");
  std::vector<experiments::Run> runs;
  for (const std::int64_t batch : {64, 128})
    for (const std::uint64_t seed : {0, 1, 2}) {
      experiments::Run run = make_run("mlp", 1, seed);
      run.batch_size = run.global_batch = batch;
      run.axes["batch"] = batch;
      runs.push_back(run);
    }
  db::Ingest ingest(database);
  nlohmann::json entry = run_entry("demo", runs, "2026-11-20T08:00:00.000Z");
  experiments::Compare compare;
  compare.axis = "batch";
  compare.baseline = "64";
  entry["compare"] = nlohmann::json::array({experiments::to_json(compare)});
  entry["varied"] = {"batch", "seed"};
  ingest.journal_entry(entry);
  for (const experiments::Run& run : runs) {
    const double seconds = 100.0 / static_cast<double>(run.batch_size) + 0.1 * static_cast<double>(run.seed);
    finish(ingest, run, make_launch(run), {seconds, seconds, seconds});
  }
  const ReportData data = gather(database, "demo");
  const Content content = compose(data);
  REQUIRE(content.studies.size() == 1);
  CHECK(content.studies.front().figures.size() == 3);  // accuracy, loss and time
  for (const Figure& figure : content.studies.front().figures) {
    CAPTURE(figure.slug);
    const db::ResultTable table = db::select(database, figure.sql);
    CHECK(table.columns[3] == "batch");
    std::map<double, std::vector<double>> values;
    const double scale = figure.unit == "%" ? 100 : 1;
    for (const auto& row : table.rows)
      values[std::stod(row[3].dump().find('"') == 0 ? row[3].get<std::string>() : row[3].dump())].push_back(
          scale * row.back().get<double>());
    const std::vector<Point>& points = series_of(figure).front().points;
    REQUIRE(points.size() == 2);
    for (const Point& point : points) {
      const std::vector<double>& at = values[point.x];
      REQUIRE(at.size() == 3);
      CHECK(point.n == 3);
      CHECK(point.mean == doctest::Approx((at[0] + at[1] + at[2]) / 3).epsilon(1e-12));
    }
  }
}

TEST_CASE("in the terminal table, ddp in half the time is an improvement") {
  const TemporaryFolder folder;
  const db::Database database = filled(folder);
  const std::string text = terminal_table(compose(gather(database, "demo")));
  const std::size_t line = text.find("train seconds");
  REQUIRE(line != std::string::npos);
  CHECK(text.substr(line, text.find('\n', line) - line).find("IMPROVES") != std::string::npos);
}

TEST_CASE("without an arm to compare, the terminal has a sentence and no empty table") {
  const ReportData data = invented({.models = {"mlp"}, .strategies = {"single"}, .seeds = 1});
  const std::string text = terminal_table(compose(data));
  CHECK(text.find("No verdicts against single: there is no arm of strategy.\n") != std::string::npos);
  CHECK(text.find("95 % interval") == std::string::npos);
  const std::string page = page_html(compose(data));
  CHECK(page.find("there is no arm of strategy.") != std::string::npos);
  CHECK(page.find("In each cell: ") == std::string::npos);
}

TEST_CASE("a report is INTERIM while runs are planned") {
  const TemporaryFolder folder;
  const db::Database database = filled(folder, 1);
  const std::string text = terminal_table(compose(gather(database, "demo")));
  CHECK(text.find("INTERIM") != std::string::npos);
  CHECK(text.find("IMPROVES") == std::string::npos);
}

TEST_CASE("an experiment that is unknown or has no epoch yet is a user error") {
  const TemporaryFolder folder;
  const db::Database database = filled(folder, 6);
  CHECK_THROWS_AS(write_report(compose(gather(database, "demo")), folder / "report"), UserError);
  CHECK_THROWS_AS(write_report(compose(gather(database, "other")), folder / "report"), UserError);
}

}  // namespace
}  // namespace trainyard::reports
