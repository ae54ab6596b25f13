// Reports on a part of the runs, and on several experiments.
#include <algorithm>
#include <optional>
#include <set>

#include <doctest/doctest.h>

#include "base/error.h"
#include "reports/analysis/analysis.h"
#include "reports/content/content.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "reports/results/report_data.h"
#include "reports/results/sanity_checks.h"
#include "tests/reports/support/made_results.h"

namespace trainyard::reports {
namespace {

TEST_CASE("values of one name are alternatives, all names must match, and the page names the selection") {
  ReportData data = invented({.models = {"mlp", "cnn", "vgg11"}, .seeds = 3});
  keep_selected(data, {{}, "", {"model=mlp", "model=cnn", "seed=1"}});
  CHECK(data.runs.size() == 4);  // two models, two strategies, one seed
  CHECK(data.finals.size() == 4);
  CHECK(data.plan.keys.size() == 4);
  CHECK(std::ranges::all_of(data.averages, [](const db::EpochRow& row) { return row.seed == 1; }));
  CHECK(page_html(compose(data)).find("model=mlp, model=cnn, seed=1") != std::string::npos);
}

TEST_CASE("\"since\" keeps runs whose last record is not older") {
  ReportData data = invented({.models = {"mlp"}, .seeds = 3});
  for (db::RunSummary& run : data.runs) run.updated = "2026-11-20T09:30:12.345Z";
  run_of(data, "mlp", "ddp", 2).updated = "2026-11-19T23:59:59.999Z";
  ReportData whole = data;
  keep_selected(data, {{}, "2026-11-20", {}});
  CHECK(data.runs.size() == 5);
  keep_selected(whole, {{}, "2026-11-19", {}});
  CHECK(whole.runs.size() == 6);
}

TEST_CASE("an invalid selection is a user error with advice") {
  const auto problem = [](const Selection& selection) -> std::string {
    ReportData data = invented();
    try {
      keep_selected(data, selection);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(problem({{}, "", {"modle=mlp"}}).find("model") != std::string::npos);
  CHECK(problem({{}, "", {"model"}}).find("no =") != std::string::npos);
  CHECK(problem({{}, "yesterday", {}}).find("2026-11-20") != std::string::npos);
  for (const char* no_time : {"2026-13-01", "2026-02-29", "2026-11-20T", "2026-11-20T9", "2026-11-20T24",
                              "2026-11-20T09:60", "2026-11-20T09:30:"})
    CHECK_MESSAGE(problem({{}, no_time, {}}).find("is not a time") != std::string::npos, no_time);
  for (const char* time : {"2024-02-29", "2020-11-20T09", "2020-11-20T09:30", "2020-11-20T09:30:12.345Z"})
    CHECK_MESSAGE(problem({{}, time, {}}).empty(), time);
  CHECK(problem({{}, "", {"model=none"}}).find("no run of first sweep matches: ") != std::string::npos);
}

std::vector<std::string> labels_in(const Comparison& comparison) {
  std::vector<std::string> labels;
  for (const Cell& cell : comparison.cells) labels.push_back(cell.label);
  return labels;
}

// The sweep of mlp and cnn with another batch, learning rate and number of epochs for mlp, so that its runs
// differ from those of the first sweep. The runs of cnn are the same.
ReportData second_sweep() {
  ReportData second = invented({.models = {"mlp", "cnn"}, .seeds = 3});
  second.experiment = "second sweep";
  for (db::RunSummary& run : second.runs) {
    if (run.model != "mlp") continue;
    const std::string old = run.run_key;
    run.run_key = "b" + old.substr(1);
    run.axes["batch"] = std::int64_t{64};
    run.axes["learning_rate"] = 0.02;
    run.axes["epochs"] = std::int64_t{7};
    for (db::FinalMetrics& final : second.finals)
      if (final.run_key == old) final.run_key = run.run_key;
    for (std::vector<db::EpochRow>* rows : {&second.averages, &second.replicas})
      for (db::EpochRow& row : *rows)
        if (row.run_key == old) row.run_key = run.run_key;
    std::ranges::replace(second.plan.keys, old, run.run_key);
    second.launched[run.run_key] = second.launched.at(old);
  }
  second.history.front().keys = second.plan.keys;
  return second;
}

TEST_CASE("in a report of several experiments each keeps its comparison, and labels name only what differs") {
  const ReportData first = invented({.models = {"mlp"}, .seeds = 3});
  const ReportData data = merged({first, second_sweep(), first});
  CHECK(data.runs.size() == 18);  // three seeds, two strategies, three cells
  const Content content = compose(data);
  REQUIRE(content.report->comparisons.size() == 2);
  CHECK(content.report->comparisons[0].experiment == "first sweep");
  CHECK(labels_in(content.report->comparisons[0]) == std::vector<std::string>{"MLP, first sweep"});
  CHECK(labels_in(content.report->comparisons[1]) == std::vector<std::string>{"MLP, second sweep", "CNN"});
  std::vector<std::string> figures;
  for (const CellFigures& cell : content.figures) figures.push_back(cell.cell->label);
  CHECK(figures == std::vector<std::string>{"MLP, first sweep", "MLP, second sweep", "CNN"});
  std::set<std::string> slugs;
  for (const Figure* figure : all_figures(content))
    CHECK_MESSAGE(slugs.insert(figure->slug).second, figure->slug);
  for (const PaperTable& table : content.tables)
    CHECK_MESSAGE(slugs.insert("t" + table.slug).second, table.slug);
}

TEST_CASE("in a report of several experiments the verdicts are those of the separate reports") {
  ReportData first = invented({.models = {"mlp", "cnn"}, .seeds = 3});
  first.plan.compare.front().margins.time = 3;  // so that half the time is inside the margin
  first.history.front().compare = first.plan.compare;
  const ReportData second = second_sweep();
  const ReportData both = merged({first, second});
  const auto words = [](const Comparison& comparison) {
    std::vector<std::string> found;
    for (const Cell& cell : comparison.cells)
      for (const Verdict& verdict : cell.verdicts)
        found.push_back(cell.model + verdict.metric + text_of(verdict.kind));
    return found;
  };
  const auto alone = [&](const ReportData& data) { return words(make_report(data).comparisons.front()); };
  const Content content = compose(both);
  REQUIRE(content.report->comparisons.size() == 2);
  CHECK(words(content.report->comparisons[0]) == alone(first));
  CHECK(words(content.report->comparisons[1]) == alone(second));
  CHECK(words(content.report->comparisons[0]) != words(content.report->comparisons[1]));
}

TEST_CASE("in a report of several experiments an expectation is for the runs of its own experiment") {
  ReportData first = invented({.models = {"mlp"}, .seeds = 3});
  first.plan.expect.push_back({"mlp", "test", "accuracy", 2.0, std::nullopt});
  const std::vector<CheckedExpectation> checked = check_expectations(merged({first, second_sweep()}));
  REQUIRE(checked.size() == 1);
  CHECK(checked.front().values.size() == 6);
  CHECK(text_of(checked.front()).starts_with("first sweep: mlp: test_accuracy"));
}

TEST_CASE("a selection of a report of several experiments keeps its experiments") {
  ReportData data = merged({invented({.models = {"cnn"}, .seeds = 3}), second_sweep()});
  keep_selected(data, {{}, "", {"model=mlp"}});
  const Content content = compose(data);
  REQUIRE(content.report->comparisons.size() == 1);
  CHECK(content.report->comparisons.front().experiment == "second sweep");
}

// A second experiment with different runs: a study of the batch, with 128 as the baseline.
ReportData batch_study() {
  ReportData data = invented({.models = {"cnn"}, .strategies = {"single"}, .seeds = 6});
  data.experiment = "batches";
  for (db::RunSummary& run : data.runs)
    if (run.seed >= 3) {
      run.seed -= 3;
      run.axes["batch"] = std::int64_t{64};
      run.axes["seed"] = run.seed;
    }
  data.plan.varied = {"batch", "seed"};
  data.plan.compare.front().axis = "batch";
  data.plan.compare.front().baseline = "128";
  data.history.front().compare = data.plan.compare;
  return data;
}

TEST_CASE("in a joint report, a comparison of one experiment is not applied to runs of another") {
  const ReportData data = merged({invented({.models = {"mlp"}, .seeds = 3}), batch_study()});
  const Content content = compose(data);
  REQUIRE(content.report->comparisons.size() == 2);
  const auto cells_in = [&](std::size_t i) {
    std::vector<std::string> models;
    for (const Cell& cell : content.report->comparisons[i].cells) models.push_back(cell.model);
    return models;
  };
  CHECK(cells_in(0) == std::vector<std::string>{"mlp"});  // the strategies of the sweep
  CHECK(cells_in(1) == std::vector<std::string>{"cnn"});  // the batches of the study
  CHECK(content.report->comparisons[1].cells.front().arms.front().value == "64");
  std::vector<std::string> figures;
  for (const CellFigures& cell : content.figures) figures.push_back(cell.cell->model);
  CHECK(figures == std::vector<std::string>{"mlp", "cnn"});  // all runs are plotted
  CHECK(std::ranges::any_of(content.report->fairness, [](const Statement& statement) {
    return statement.text.starts_with("batches: ");
  }));
}

TEST_CASE("sections, answers and terminal of a report of several experiments name the experiment") {
  ReportData second = invented({.models = {"cnn"}, .seeds = 3});
  second.experiment = "second sweep";
  const ReportData data = merged({invented({.models = {"mlp"}, .seeds = 3}), second});
  const Content content = compose(data);
  REQUIRE(content.answer.paragraphs.size() == 2);
  CHECK(content.answer.paragraphs[1].front().starts_with("second sweep: Training time improves for CNN"));
  CHECK(terminal_table(content).find("\nsecond sweep: verdicts against single\n") != std::string::npos);
  const std::string page = page_html(content);
  CHECK(page.find("<h2>second sweep: verdicts against single</h2>") != std::string::npos);
  CHECK(page.find("id=\"verdicts-second-sweep-strategy-single\"") != std::string::npos);
}

TEST_CASE("a report on several experiments has the data, published numbers and SQL condition of all") {
  ReportData first = invented({.models = {"mlp"}, .seeds = 3});
  ReportData second = invented({.models = {"cnn"}, .seeds = 3});
  first.experiment = "one's";
  second.experiment = "two";
  const auto add_data = [](ReportData& data, const std::string& name) {
    data.plan.data_profiles.push_back({name, name, "identity", {}});
    data.plan.published.emplace();
    data.plan.published->sources.push_back({.name = name, .hardware = {}, .series = {}});
  };
  add_data(first, "mnist");
  add_data(second, "cifar10");
  const ReportData data = merged({first, second});
  CHECK(experiments_in_sql(make_report(data)) == "('one''s', 'two')");
  CHECK(experiments_in_sql(make_report(first)) == "('one''s')");
  CHECK(data.plan.data_profiles.size() == 2);
  CHECK(data.plan.published->sources.size() == 2);
  second.plan.data_profiles = first.plan.data_profiles;
  second.plan.published = first.plan.published;
  CHECK(merged({first, second}).plan.data_profiles.size() == 1);
  CHECK(merged({first, second}).plan.published->sources.size() == 1);
}

}  // namespace
}  // namespace trainyard::reports
