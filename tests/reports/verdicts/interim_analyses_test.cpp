// Looks from the journal: the planned sets of seeds, their rules, and the verdicts that follow.
#include "reports/verdicts/interim_analyses.h"

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

InterimPlan planned(const ReportData& data) {
  const experiments::Compare& compare = data.plan.compare.front();
  const std::vector<CellRuns> cells = make_cells(data, compare);
  return plan_interim_analyses(data, compare, cells.front(), cells.front().arms.front());
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

TEST_CASE("each larger planned set of seeds is a look, and the same set again is not") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 4));
  plan_again(data, keys_of_seeds(data, 0, 4));
  plan_again(data, keys_of_seeds(data, 2, 3));  // run --where
  plan_again(data, keys_of_seeds(data, 0, 9));
  const InterimPlan plan = planned(data);
  REQUIRE(plan.looks.size() == 2);
  CHECK(plan.looks[0] == std::set<std::string>{"0", "1", "2", "3", "4"});
  CHECK(plan.looks[1].size() == 10);
}

TEST_CASE("a set of fewer than three seeds cannot be tested and is not a look") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 0));
  plan_again(data, keys_of_seeds(data, 0, 4));
  CHECK(planned(data).looks.size() == 1);
}

TEST_CASE("arms that are planned one after the other have one look, after both are planned") {
  ReportData data = unplanned();
  std::vector<std::string> single;
  for (const db::RunSummary& run : data.runs)
    if (run.strategy == "single") single.push_back(run.run_key);
  plan_again(data, single);
  plan_again(data, keys_of_seeds(data, 0, 9));
  CHECK(planned(data).looks.size() == 1);
}

TEST_CASE("the verdict is that of the first look that decided") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 4));
  plan_again(data, keys_of_seeds(data, 0, 9));
  set_final(data, "mlp", "single", "validation_accuracy", [](int) { return 0.9; });
  set_final(data, "mlp", "ddp", "validation_accuracy",
            [](int seed) { return 0.9 + (seed < 5 ? 0.02 : -0.0198) + 0.0001 * (seed % 2); });
  const TestedVerdict verdict = accuracy_verdict(data);
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(verdict.n == 5);
  CHECK(verdict.look == 1);
  CHECK(verdict.looks == 2);
  CHECK(verdict.look_level == doctest::Approx(0.04));
  set_final(data, "mlp", "ddp", "validation_accuracy",
            [](int seed) { return 0.9 + (seed < 5 ? 0.0060 : 0.0005) + 0.00005 * (seed % 2); });
  const TestedVerdict first = accuracy_verdict(data);
  CHECK(first.kind == VerdictKind::improves);
  CHECK_FALSE(has_note(first, "look 2"));  // look 2 decides nothing
}

TEST_CASE("a later look with another decision is printed beside the verdict") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 2));
  plan_again(data, keys_of_seeds(data, 0, 9));
  set_final(data, "mlp", "single", "validation_accuracy", [](int) { return 0.9; });
  set_final(data, "mlp", "ddp", "validation_accuracy",
            [](int seed) { return 0.9 + (seed < 3 ? 0.006 : 0.0005) + 0.00002 * (seed % 2); });
  const TestedVerdict verdict = accuracy_verdict(data);
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(verdict.n == 3);
  CHECK(has_note(verdict, "decided at the first look, n = 3"));
  const Content content = compose(data);  // each row has the note
  CHECK(contains(page_html(content, {}), "<i>decided at the first look, n = 3</i>"));
  const std::string markdown = markdown_report(content, {});
  CHECK(contains(markdown, "| IMPROVES \\["));  // a long remark is once below the table
  CHECK(contains(markdown, "\\] decided at the first look, n = 3; all 10: +0.2"));
  // of ten: mean 0.216, spread 0.265, inside ± 0.5 with p₌ = 0.00404 (SciPy)
  CHECK(has_note(verdict, "look 2 (n = 10): NO CHANGE"));
  REQUIRE(verdict.later.has_value());
  CHECK(verdict.later->n == 10);
  CHECK(verdict.later->effect == doctest::Approx(0.216).epsilon(1e-9));
  CHECK(contains(page_html(content, {}), "<i>all 10: +0.2"));
  CHECK(contains(csv_table(verdict_numbers(content.report->comparisons)), ",10,0.216"));
}

TEST_CASE("a second look tests at a tenth of α") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 3));
  plan_again(data, keys_of_seeds(data, 0, 9));
  set_accuracy(data, 0.05, 0.45);
  const TestedVerdict verdict = accuracy_verdict(data);
  CHECK(verdict.look == 2);
  CHECK(verdict.level == doctest::Approx(0.005));
  CHECK(verdict.n == 10);
  CHECK(std::abs(verdict.three_sided.equivalent - 0.007478181955207111) < 1e-9);  // SciPy
  CHECK(verdict.kind == VerdictKind::inconclusive);
  CHECK(has_note(verdict, "look 1 (n = 4) gave no decision"));
  CHECK_FALSE(has_note(verdict, "decided at"));
}

TEST_CASE("with `final` the planned look has all of α, and later seeds change nothing") {
  ReportData data = unplanned();
  data.plan.compare.front().final_look = true;
  plan_again(data, keys_of_seeds(data, 0, 3));
  plan_again(data, keys_of_seeds(data, 0, 9));
  set_accuracy(data, 0, 0.01);
  const TestedVerdict verdict = accuracy_verdict(data);
  CHECK(verdict.n == 4);
  CHECK(verdict.looks == 1);
  CHECK(verdict.level == 0.05);
}

TEST_CASE("while runs of a new look are missing, the previous verdict is kept, or else it is INTERIM") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 4));
  plan_again(data, keys_of_seeds(data, 0, 9));
  set_accuracy(data, 0, 0.01);
  set_status(data, "mlp", "ddp", 8, "running");
  const TestedVerdict decided = accuracy_verdict(data);
  CHECK(decided.kind == VerdictKind::no_change);
  CHECK(has_note(decided, "look 2 (n = 9): 1 planned run not finished yet"));
  set_accuracy(data, 0.5, 0.4);
  CHECK(accuracy_verdict(data).kind == VerdictKind::interim);
}

TEST_CASE("if planned runs are dropped from the plan, the remaining runs are a new look") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 9));
  for (int seed = 5; seed < 10; ++seed)
    for (const char* arm : {"single", "ddp"}) set_status(data, "mlp", arm, seed, "planned");
  set_accuracy(data, 0, 0.01);
  CHECK(accuracy_verdict(data).kind == VerdictKind::interim);
  plan_again(data, keys_of_seeds(data, 0, 4));
  const TestedVerdict verdict = accuracy_verdict(data);
  CHECK(verdict.look == 2);
  CHECK(verdict.n == 5);
  CHECK(verdict.kind == VerdictKind::no_change);
}

TEST_CASE("margins and α come from the first plan, and a later change is printed") {
  ReportData data = unplanned();
  plan_again(data, keys_of_seeds(data, 0, 4));
  data.plan.compare.front().margins.accuracy_points = 5;
  data.plan.compare.front().alpha = 0.2;
  plan_again(data, keys_of_seeds(data, 0, 4));
  const TestedVerdict verdict = accuracy_verdict(data);
  CHECK(verdict.delta == 0.5);
  CHECK(verdict.look_level == doctest::Approx(0.04));
  CHECK(has_note(verdict, "margin of accuracy was 0.5 in the first plan, now 5"));
  CHECK(has_note(verdict, "alpha was 0.05 in the first plan, now 0.2"));
}

}  // namespace
}  // namespace trainyard::reports
