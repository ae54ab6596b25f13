// Which runs a sweep still needs if cells get seeds until they are decided, and when words are final.
#include "reports/verdicts/needed_runs.h"

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "reports/verdicts/verdict.h"
#include "tests/reports/support/judged.h"
#include "tests/reports/support/made_results.h"

namespace trainyard::reports {
namespace {

// One model with seeds 0 … 9 in a plan from 4 to 10. Only the first `finished` have results.
ReportData planned_range(int finished, int max = 10) {
  ReportData data = invented({.models = {"mlp"}, .seeds = 10});
  data.history.clear();
  data.plan.compare.front().seeds = {4, max};
  plan_again(data, keys_of_seeds(data, 0, max - 1));
  for (const char* arm : {"single", "ddp"}) {
    for (int seed = finished; seed < 10; ++seed) set_status(data, "mlp", arm, seed, "planned");
    for (const char* metric : {"validation_accuracy", "validation_loss", "epoch_train_seconds"})
      set_final(data, "mlp", arm, db::MetricColumn::named(metric),
                [&](int seed) { return 0.9 + 1e-5 * (seed % 3) * (arm[0] == 'd' ? 1 : 2); });
  }
  return data;
}

// Differences of validation accuracy that no further pair decides: their mean is on the margin.
void set_undecided(ReportData& data) {
  set_final(data, "mlp", "ddp", "validation_accuracy",
            [](int seed) { return 0.905 + (seed % 2 == 0 ? 0.001 : -0.001); });
}

bool is_needed(ReportData& data, const std::string& arm, int seed) {
  const NeededRuns needed = needed_runs(data);
  const std::string key = run_of(data, "mlp", arm, seed).run_key;
  CHECK_FALSE((needed.order.contains(key) && needed.unneeded.contains(key)));
  return !needed.unneeded.contains(key);
}

TestedVerdict accuracy_of(const std::vector<CellVerdicts>& cells) {
  const TestedVerdict* verdict = cells.front().find("ddp", "validation-accuracy");
  REQUIRE(verdict != nullptr);
  return *verdict;
}

TEST_CASE("before the first look all its pairs are needed, in the order of the plan") {
  ReportData data = planned_range(0);
  const NeededRuns needed = needed_runs(data);
  CHECK(needed.cells == 1);
  CHECK(needed.settled == 0);
  CHECK(needed.unneeded.empty());
  for (const char* arm : {"single", "ddp"}) {
    CHECK(needed.order.at(run_of(data, "mlp", arm, 3).run_key) == 0);
    CHECK(needed.order.at(run_of(data, "mlp", arm, 4).run_key) == 1);
    CHECK(needed.order.at(run_of(data, "mlp", arm, 5).run_key) == 2);
  }
}

TEST_CASE("a decided cell needs no further pair, and an undecided one needs all") {
  ReportData data = planned_range(4);
  CHECK(needed_runs(data).settled == 1);
  CHECK(needed_runs(data).unneeded.size() == 12);
  set_undecided(data);
  CHECK(needed_runs(data).settled == 0);
  CHECK(is_needed(data, "single", 4));
  CHECK(accuracy_of(judged(data)).kind == VerdictKind::interim);
}

TEST_CASE("the times of further pairs are needed only until the arm has its word on times") {
  ReportData data = planned_range(4);
  set_undecided(data);
  const NeededRuns decided = needed_runs(data);
  CHECK(decided.untimed.contains(run_of(data, "mlp", "single", 4).run_key));
  CHECK(decided.untimed.contains(run_of(data, "mlp", "ddp", 9).run_key));
  CHECK(decided.untimed.size() == decided.order.size());
  set_final(data, "mlp", "ddp", "epoch_train_seconds", [](int seed) { return 0.94 + 0.02 * (seed % 2); });
  CHECK(needed_runs(data).untimed.empty());
  CHECK(needed_runs(planned_range(0)).untimed.empty());
}

TEST_CASE("a pair without a value delays the first look and does not end the sweep") {
  ReportData data = planned_range(4);
  set_status(data, "mlp", "ddp", 2, "failed");
  const TestedVerdict verdict = accuracy_of(judged(data));
  CHECK(verdict.kind == VerdictKind::interim);
  CHECK_FALSE(verdict.tested);
  CHECK(is_needed(data, "ddp", 4));
  CHECK(is_needed(data, "ddp", 2));  // the failed run
}

TEST_CASE("failed runs of an arm without a word are needed, and those of a decided arm are not") {
  ReportData data = planned_range(10);
  for (int seed = 0; seed < 4; ++seed) set_status(data, "mlp", "ddp", seed, "failed");
  for (int seed = 4; seed < 10; ++seed)
    for (const char* arm : {"single", "ddp"}) set_status(data, "mlp", arm, seed, "planned");
  CHECK(is_needed(data, "ddp", 0));
  ReportData decided = planned_range(10);
  set_status(decided, "mlp", "ddp", 9, "failed");
  CHECK_FALSE(is_needed(decided, "ddp", 9));
}

TEST_CASE("runs without a partner are needed") {
  ReportData data = planned_range(0);
  std::erase_if(data.runs, [](const db::RunSummary& run) { return run.strategy != "single"; });
  CHECK(is_needed(data, "single", 0));
  CHECK(is_needed(data, "single", 9));
}

TEST_CASE("later seeds are needed if the first plan gave no word") {
  ReportData data = planned_range(6, 6);
  set_undecided(data);
  CHECK(accuracy_of(judged(data)).kind == VerdictKind::inconclusive);
  plan_again(data, keys_of_seeds(data, 0, 9));
  CHECK(is_needed(data, "ddp", 8));
  ReportData decided = planned_range(6, 6);
  plan_again(decided, keys_of_seeds(decided, 0, 9));
  CHECK_FALSE(is_needed(decided, "ddp", 8));
}

TEST_CASE("a shorter plan keeps the looks of the first one, and a fixed one is then EXPLORATORY") {
  ReportData data = planned_range(6);
  plan_again(data, keys_of_seeds(data, 0, 5));
  CHECK(accuracy_of(judged(data)).last_look == 10);
  ReportData fixed = planned_range(6);
  for (db::PlanEntry& entry : fixed.history) entry.compare.front().seeds.reset();
  fixed.plan.compare.front().seeds.reset();
  plan_again(fixed, keys_of_seeds(fixed, 0, 5));
  const std::vector<CellVerdicts> cells = judged(fixed);
  const TestedVerdict verdict = accuracy_of(cells);
  REQUIRE(verdict.caveats.size() == 1);
  CHECK(verdict.caveats[0].mark == "EXPLORATORY");
  CHECK(verdict.caveats[0].text == "4 of 10 planned pairs were given up later");
}

TEST_CASE("a seed that diverges after the word does not change it") {
  ReportData data = planned_range(6);
  final_of(data, "mlp", "ddp", 5)["train_loss"] = NAN;
  CHECK(accuracy_of(judged(data)).kind == VerdictKind::no_change);
  CHECK(accuracy_of(judged(data)).n == 4);
  ReportData early = planned_range(6);
  final_of(early, "mlp", "ddp", 2)["train_loss"] = NAN;
  CHECK(accuracy_of(judged(early)).kind == VerdictKind::deteriorates);
}

TEST_CASE("values that are identical at the first look stay so, whatever comes later") {
  ReportData data = planned_range(6);
  data.probes[run_of(data, "mlp", "ddp", 0).run_key] = {};
  set_final(data, "mlp", "single", "validation_accuracy", [](int) { return 0.9; });
  set_final(data, "mlp", "ddp", "validation_accuracy", [](int seed) { return seed < 4 ? 0.9 : 0.8; });
  const std::vector<CellVerdicts> cells = judged(data);
  const TestedVerdict verdict = accuracy_of(cells);
  CHECK(verdict.kind == VerdictKind::no_change);
  CHECK(verdict.n == 4);
  CHECK_FALSE(verdict.p.has_value());
  REQUIRE(verdict.later.has_value());
  CHECK(verdict.later->n == 6);
}

}  // namespace
}  // namespace trainyard::reports
