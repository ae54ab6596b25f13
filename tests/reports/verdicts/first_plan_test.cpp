// First plans from the journal: seeds, looks and rules, and the verdicts that follow.
#include "reports/verdicts/first_plan.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "reports/content/content.h"
#include "reports/content/paper_tables.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "reports/verdicts/verdict.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

// Ten seeds of one model, without a plan in the journal.
ReportData unplanned() {
  ReportData data = invented({.models = {"mlp"}, .seeds = 10});
  data.history.clear();
  return data;
}

// Sets the differences of validation accuracy to `mean` ± `spread` points.
void set_accuracy(ReportData& data, double mean, double spread) {
  set_final(data, "mlp", "single", "validation_accuracy", [](int) { return 0.9; });
  set_final(data, "mlp", "ddp", "validation_accuracy",
            [&](int seed) { return 0.9 + (mean + (seed % 2 == 0 ? spread : -spread)) / 100; });
}

// Differences of 0.6 points, and from this seed on of `later`.
void set_accuracy_from(ReportData& data, int from, double later) {
  set_final(data, "mlp", "single", "validation_accuracy", [](int) { return 0.9; });
  set_final(data, "mlp", "ddp", "validation_accuracy",
            [&](int seed) { return 0.9 + (seed < from ? 0.006 : later) + 0.00002 * (seed % 2); });
}

FirstPlan planned(const ReportData& data) {
  const experiments::Compare& compare = data.plan.compare.front();
  const std::vector<CellRuns> cells = make_cells(data, compare);
  return first_plan(data, compare, cells.front(), cells.front().arms.front());
}

TestedVerdict accuracy_verdict(const ReportData& data) {
  const std::vector<CellVerdicts> cells = judge(data, data.plan.compare.front());
  const TestedVerdict* verdict = cells.front().find("ddp", "validation-accuracy");
  REQUIRE(verdict != nullptr);
  return *verdict;
}

bool has_note(const TestedVerdict& verdict, const std::string& text) {
  for (const std::string& note : verdict.notes)
    if (note.find(text) != std::string::npos) return true;
  return false;
}

bool has_mark(const TestedVerdict& verdict, const std::string& mark, const std::string& text) {
  return std::ranges::any_of(verdict.caveats, [&](const Caveat& caveat) {
    return caveat.mark == mark && contains(caveat.text, text);
  });
}

void use_range(ReportData& data, int min, int max) {
  data.plan.compare.front().seeds = {min, max};
}

TEST_CASE("the first plan has the first seeds that are enough for a test, and others are later") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 0));
  plan_again(data, keys_of_seeds(data, 0, 4));
  plan_again(data, keys_of_seeds(data, 2, 3));  // run --where
  plan_again(data, keys_of_seeds(data, 0, 9));
  const FirstPlan plan = planned(data);
  CHECK(plan.pairs == std::set<std::string>{"0", "1", "2", "3", "4"});
  CHECK(plan.later.size() == 5);
  CHECK(plan.looks.first == 5);
  CHECK(plan.looks.last == 5);
}

TEST_CASE("arms that are planned one after the other have a plan after both are planned") {
  ReportData data = unplanned();
  std::vector<std::string> single;
  for (const db::RunSummary& run : data.runs)
    if (run.strategy == "single") single.push_back(run.run_key);
  plan_again(data, single);
  plan_again(data, keys_of_seeds(data, 0, 9));
  CHECK(planned(data).pairs.size() == 10);
  CHECK(planned(data).later.empty());
}

TEST_CASE("a range of seeds has a look after each pair, and one look if the runs are not paired") {
  ReportData data = unplanned();
  use_range(data, 4, 10);
  plan_again(data, keys_of_seeds(data, 0, 9));
  CHECK(planned(data).looks.first == 4);
  CHECK(planned(data).looks.last == 10);
  data.plan.compare.front().pair.clear();
  CHECK(planned(data).looks.first == planned(data).looks.last);
}

TEST_CASE("the word of the first plan stays, and all seeds are an estimate beside it") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 4));
  plan_again(data, keys_of_seeds(data, 0, 9));
  set_accuracy_from(data, 5, 0.003);
  const TestedVerdict verdict = accuracy_verdict(data);
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(verdict.n == 5);
  CHECK_FALSE(has_note(verdict, "EXPLORATORY"));  // all seeds do not decide
  REQUIRE(verdict.later.has_value());
  CHECK(verdict.later->n == 10);
  CHECK(verdict.later->effect == doctest::Approx(0.451));
  const Content content = compose(data);
  CHECK(contains(page_html(content, {}), "<i>all 10: +0.4"));
  CHECK(contains(csv_table(verdict_numbers(content.report->comparisons)), ",10,0.451"));
}

TEST_CASE("a word of later seeds that contradicts the first one is a note") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 2));
  plan_again(data, keys_of_seeds(data, 0, 9));
  set_accuracy_from(data, 3, 0.0005);
  const TestedVerdict verdict = accuracy_verdict(data);
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(verdict.n == 3);
  // of ten: mean 0.216, spread 0.265, inside ± 0.5 with p₌ = 0.00404 (SciPy)
  CHECK(has_note(verdict, "all 10 pairs, EXPLORATORY: NO CHANGE"));
}

TEST_CASE("if the first plan does not decide, the word of all seeds is EXPLORATORY") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 3));
  plan_again(data, keys_of_seeds(data, 0, 9));
  set_accuracy(data, 0.05, 0.45);
  const TestedVerdict verdict = accuracy_verdict(data);
  CHECK(verdict.n == 10);
  CHECK(std::abs(verdict.three_sided.equivalent - 0.007478181955207111) < 1e-9);  // SciPy
  CHECK(verdict.kind == VerdictKind::no_change);
  CHECK(has_mark(verdict, exploratory_mark, "the first plan, of 4 pairs, says INCONCLUSIVE"));
  set_status(data, "mlp", "ddp", 8, "running");
  CHECK(accuracy_verdict(data).n == 4);  // until all later seeds have finished
  CHECK(accuracy_verdict(data).kind == VerdictKind::inconclusive);
}

TEST_CASE("while runs of the first plan are missing, the verdict is INTERIM") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 4));
  set_accuracy(data, 0, 0.01);
  CHECK(accuracy_verdict(data).kind == VerdictKind::no_change);
  set_status(data, "mlp", "ddp", 3, "running");
  CHECK(accuracy_verdict(data).kind == VerdictKind::interim);
}

TEST_CASE("if planned runs are dropped from the plan, the remaining runs are the plan") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 9));
  for (int seed = 5; seed < 10; ++seed)
    for (const char* arm : {"single", "ddp"}) set_status(data, "mlp", arm, seed, "planned");
  set_accuracy(data, 0, 0.01);
  CHECK(accuracy_verdict(data).kind == VerdictKind::interim);
  plan_again(data, keys_of_seeds(data, 0, 4));
  const TestedVerdict verdict = accuracy_verdict(data);
  CHECK(verdict.n == 5);
  CHECK(verdict.kind == VerdictKind::no_change);
}

TEST_CASE("margins, α and seeds come from the first plan, and a later change is printed") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 4));
  data.plan.compare.front().margins.accuracy_points = 5;
  data.plan.compare.front().alpha = 0.2;
  use_range(data, 4, 20);
  plan_again(data, keys_of_seeds(data, 0, 4));
  const TestedVerdict verdict = accuracy_verdict(data);
  CHECK(verdict.delta == 0.5);
  CHECK(verdict.alpha == 0.05);
  CHECK(has_note(verdict, "margin of accuracy was 0.5 in the first plan, now 5"));
  CHECK(has_note(verdict, "alpha was 0.05 in the first plan, now 0.2"));
  CHECK(has_note(verdict, "number of seeds was fixed in the first plan, now 4 to 20"));
}

}  // namespace
}  // namespace trainyard::reports
