// Energy is a cost like time. It is in a report only if it was measured.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "reports/content/paper_tables.h"
#include "reports/format/number_text.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "tests/reports/support/judged.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

constexpr const char* title = "Training energy per epoch";

ReportData measured() {
  ReportData data = invented({.models = {"mlp"}});
  set_final(data, "mlp", "single", "epoch_energy_joules", [](int seed) { return 500 + 0.1 * seed; });
  set_final(data, "mlp", "ddp", "epoch_energy_joules", [](int seed) { return 400 + 0.1 * seed; });
  return data;
}

TestedVerdict energy_verdict(const ReportData& data) {
  return verdict_on(judged(data), "mlp", "train-energy");
}

bool has_column(const Table& table, const std::string& name) {
  return std::ranges::find(table.columns, name, &TableColumn::title) != table.columns.end();
}

TEST_CASE("less energy is better, with the same ratio as the margin of times") {
  const TestedVerdict verdict = energy_verdict(measured());
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(verdict.scale == Scale::log_ratio);
  CHECK(verdict.delta == doctest::Approx(std::log(1.05)));
  CHECK(verdict.effect.value() == doctest::Approx(-20).epsilon(1e-3));
  CHECK_FALSE(find_metric("train-energy").kind->higher_is_better);
}

TEST_CASE("energy of runs that shared the host or a device is in no verdict") {
  ReportData data = measured();
  for (db::FinalMetrics& final : data.finals) final.times_count = final.strategy == "single";
  const TestedVerdict verdict = energy_verdict(data);
  CHECK(verdict.n == 0);
  CHECK(verdict.kind == VerdictKind::no_data);
  CHECK(verdict.reason.text == "the energy of all five runs of ddp does not count");
}

TEST_CASE("a run without the number is named, and the others count") {
  ReportData data = measured();
  final_of(data, "mlp", "ddp", 2)["epoch_energy_joules"] = db::not_defined;
  const TestedVerdict verdict = energy_verdict(data);
  CHECK(verdict.n == 4);
  REQUIRE(verdict.dropped.size() == 1);
  CHECK(contains(verdict.dropped.front(), "seed 2: ddp has no value"));
}

TEST_CASE("page, Markdown, LaTeX tables and numbers have energy only if it was measured") {
  const ReportData with = invented({.models = {"mlp"}, .energy = true}),
                   without = invented({.models = {"mlp"}});
  const Content measured = compose(with), bare = compose(without);
  CHECK(contains(page_html(measured, {"svg"}), title));
  CHECK(contains(page_html(measured, {"svg"}), "J/epoch"));
  CHECK(contains(markdown_report(measured, {"svg"}), title));
  CHECK(has_column(run_numbers(*measured.report), "train-energy"));
  CHECK_FALSE(contains(page_html(bare, {"svg"}), "energy"));
  CHECK_FALSE(contains(page_html(bare, {"svg"}), "J/epoch"));
  CHECK_FALSE(contains(markdown_report(bare, {"svg"}), "energy"));
  CHECK_FALSE(has_column(run_numbers(*bare.report), "train-energy"));
}

TEST_CASE("the page's table of runs has the peak memory of a device, if it was measured") {
  ReportData data = invented({.models = {"mlp"}});
  CHECK_FALSE(contains(page_html(compose(data), {"svg"}), "Peak GiB"));
  final_of(data, "mlp", "ddp", 1)["peak_device_bytes"] = 5 * 0x1p28;  // 1.25 GiB
  const std::string page = page_html(compose(data), {"svg"});
  CHECK(contains(page, "Peak GiB"));
  CHECK(contains(page, "data-value=\"1.25\""));
}

TEST_CASE("the energy panel plots the sum of all devices, in joules from zero") {
  const ReportData data = invented({.models = {"mlp"}, .energy = true});
  const Content content = compose(data);
  const auto figures = all_figures(content);
  const auto panel =
      std::ranges::find_if(figures, [](const Figure* figure) { return figure->title == title; });
  REQUIRE(panel != figures.end());
  CHECK((*panel)->unit == "J");
  const auto& lines = std::get<Lines>((*panel)->picture);
  CHECK(lines.y.from_zero);
  CHECK(lines.series.size() == 2);  // one average per arm, because a single replica has no energy of its own
}

}  // namespace
}  // namespace trainyard::reports
