// Comparisons of any axis, and parameter studies as a percentage of their benchmark.
#include <doctest/doctest.h>

#include "reports/content/paper_tables.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "tests/reports/support/made_results.h"

namespace trainyard::reports {
namespace {

// Three batches of one model on one device. Strategies of the invented data become batches.
ReportData study() {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "b64", "b32"}});
  data.plan.varied = {"batch", "seed"};
  experiments::Compare& compare = data.plan.compare.front();
  compare.axis = "batch";
  compare.baseline = "128";
  for (db::RunSummary& run : data.runs) {
    run.axes["batch"] = std::int64_t{run.strategy == "single" ? 128 : run.strategy == "b64" ? 64 : 32};
    run.axes["strategy"] = std::string("single");
  }
  const auto ratio = [](const std::string& arm) { return arm == "single" ? 1.0 : arm == "b64" ? 1.5 : 2.0; };
  for (const char* arm : {"single", "b64", "b32"}) {
    set_final(data, "mlp", arm, "epoch_train_seconds",
              [&](int seed) { return ratio(arm) * (2 + 0.01 * seed); });
    set_final(data, "mlp", arm, "validation_accuracy",
              [&](int seed) { return 0.8 + 0.02 * (ratio(arm) - 1) + 0.001 * seed; });
  }
  data.history.front().compare = data.plan.compare;
  for (db::RunSummary& run : data.runs) run.strategy = "single";
  return data;
}

TEST_CASE("any axis is compared, each value with its baseline") {
  const ReportData data = study();
  const std::vector<CellVerdicts> cells = judge(data, data.plan.compare.front());
  REQUIRE(cells.size() == 1);
  REQUIRE(cells[0].cell.arms.size() == 2);
  CHECK(cells[0].find("32", "train-seconds")->word == VerdictKind::deteriorates);
  CHECK(cells[0].find("64", "validation-accuracy")->word == VerdictKind::improves);
}

TEST_CASE("a parameter study is printed in percent of its benchmark") {
  const ReportData data = study();
  const Comparison comparison{data.plan.compare.front(), judge(data, data.plan.compare.front())};
  CHECK(is_parameter_study(comparison));
  const std::vector<BenchmarkRow> rows = benchmark_table(comparison);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].value == "128");
  CHECK(rows[0].percent.at("train-seconds").value == 100);
  CHECK(rows[1].percent.at("train-seconds").value == doctest::Approx(150));
  CHECK(rows[2].percent.at("train-seconds").value == doctest::Approx(200));
  // 0.812 and 0.822 relative to 0.802
  CHECK(rows[1].percent.at("validation-accuracy").value == doctest::Approx(100 * 0.812 / 0.802));
  CHECK(rows[2].percent.at("validation-accuracy").value == doctest::Approx(100 * 0.822 / 0.802));
  REQUIRE(rows[2].percent.at("train-seconds").interval.has_value());
  CHECK(rows[2].percent.at("train-seconds").interval->low <= 200);
  const std::string text = terminal_table(compose(data));
  CHECK(text.find("percent of baseline") != std::string::npos);
  CHECK(text.find("200.0") != std::string::npos);
  const Content content = compose(data);
  CHECK(page_html(content).find("Values in percent of batch 128, with 95 % confidence intervals.") !=
        std::string::npos);
  CHECK(markdown_report(content, {}).find("| MLP | 32 | 200.0 \\[") != std::string::npos);
  CHECK(content.tables.back().slug == "benchmark");
}

TEST_CASE("a comparison of strategies is not a parameter study") {
  const ReportData data = invented();
  CHECK_FALSE(is_parameter_study({data.plan.compare.front(), {}}));
}

}  // namespace
}  // namespace trainyard::reports
