// Caveats from the journal: removed and replaced results, plans after the results, versions of an arm.
#include <doctest/doctest.h>

#include "reports/verdicts/first_plan.h"
#include "tests/reports/support/judged.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

// The texts of the caveats of a verdict with this mark.
std::vector<std::string> texts_of(const TestedVerdict& verdict, const std::string& mark) {
  std::vector<std::string> texts;
  for (const Caveat& caveat : verdict.caveats)
    if (caveat.mark == mark) texts.push_back(caveat.text);
  return texts;
}

using Texts = std::vector<std::string>;

// The result of a run as it is now becomes an earlier one. Then another attempt is the effective one.
db::EarlierResult& replace(ReportData& data, const std::string& strategy, int seed) {
  db::FinalMetrics& final = final_of(data, "mlp", strategy, seed);
  db::EarlierResult earlier{1, "2026-11-20T10:00:00.000Z", final.times_problem, final};
  final.attempt = 2;
  data.earlier[final.run_key].push_back(earlier);
  return data.earlier[final.run_key].back();
}

void remove(ReportData& data, const std::string& strategy, int seed) {
  const db::FinalMetrics final = final_of(data, "mlp", strategy, seed);
  data.earlier[final.run_key].push_back({1, "2026-11-20T10:00:00.000Z", "", final});
  set_status(data, "mlp", strategy, seed, "planned");
}

void launch_all(ReportData& data, const std::string& strategy, const std::string& time) {
  for (db::FinalMetrics& final : data.finals)
    if (final.strategy == strategy) final.launched = time;
}

TEST_CASE("removed results make a verdict INTERIM, and the caveat names their seeds") {
  ReportData data = one_model(10);
  for (const int seed : {1, 2, 4, 5, 7, 8, 9}) {
    remove(data, "single", seed);
    remove(data, "ddp", seed);
  }
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "validation-accuracy");
  CHECK(verdict.kind == VerdictKind::interim);
  CHECK(texts_of(verdict, "REMOVED") ==
        Texts{"7 of 10 planned pairs were removed: seeds 1, 2, 4, 5, 7, 8, 9"});
}

TEST_CASE("a later plan without the removed seeds does not make the verdict final") {
  ReportData data = one_model(10);
  plan_again(data, keys_of_seeds(data, 0, 9));
  for (int seed = 4; seed < 10; ++seed) {
    remove(data, "single", seed);
    remove(data, "ddp", seed);
  }
  plan_again(data, keys_of_seeds(data, 0, 3));
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "validation-accuracy");
  CHECK(verdict.kind == VerdictKind::interim);
  CHECK(texts_of(verdict, "REMOVED").size() == 1);
  // Runs that never had a result may be abandoned: the other seeds are a look.
  data.earlier.clear();
  CHECK(verdict_on(judged(data), "mlp", "validation-accuracy").kind != VerdictKind::interim);
}

TEST_CASE("replaced results are marked in the metrics whose values changed, with the means") {
  ReportData data = one_model();
  set_final(data, "mlp", "ddp", "validation_accuracy", [](int) { return 0.75; });
  for (const int seed : {1, 3}) replace(data, "ddp", seed).values["validation_accuracy"] = 0.5 + 0.01 * seed;
  const auto cells = judged(data);
  CHECK(
      texts_of(verdict_on(cells, "mlp", "validation-accuracy"), "REPLACED") ==
      Texts{
          "2 results of ddp were replaced after being seen: mean before 52 %, mean after 75 % (seeds 1, 3)"});
  CHECK(texts_of(verdict_on(cells, "mlp", "train-loss"), "REPLACED").empty());  // trained to the same bits
}

TEST_CASE("times that did not count may be replaced without a mark, accuracies may not") {
  ReportData data = one_model();
  db::EarlierResult& earlier = replace(data, "single", 2);
  earlier.times_problem = "another program used the cores";
  earlier.values["epoch_train_seconds"] = 9;
  earlier.values["validation_accuracy"] = 0.25;
  CHECK(texts_of(verdict_on(judged(data), "mlp", "train-seconds"), "REPLACED").empty());
  CHECK(texts_of(verdict_on(judged(data), "mlp", "validation-accuracy"), "REPLACED").size() == 1);
  earlier.times_problem.clear();
  CHECK(contains(texts_of(verdict_on(judged(data), "mlp", "train-seconds"), "REPLACED").at(0),
                 "1 result of single was replaced after being seen: mean before 9 s, mean after "));
}

TEST_CASE("a result that is about to be trained again has not been replaced yet") {
  ReportData data = one_model();
  replace(data, "ddp", 1).values["validation_accuracy"] = 0.5;
  final_of(data, "mlp", "ddp", 1).attempt = 1;
  CHECK(verdict_on(judged(data), "mlp", "validation-accuracy").caveats.empty());
}

TEST_CASE("a comparison is exploratory if both runs of a pair had results before it was planned") {
  ReportData data = one_model();
  data.history.clear();
  plan_again(data, keys_of_seeds(data, 0, 4));
  data.history.front().time = "2026-11-21T08:00:00.000Z";
  launch_all(data, "single", "2026-11-20T08:00:00.000Z");
  launch_all(data, "ddp", "2026-11-21T09:00:00.000Z");
  CHECK(
      verdict_on(judged(data), "mlp", "train-loss").caveats.empty());  // an old baseline alone does not count
  final_of(data, "mlp", "ddp", 3).launched = "2026-11-20T09:00:00.000Z";
  CHECK(texts_of(verdict_on(judged(data), "mlp", "train-loss"), "EXPLORATORY") ==
        Texts{"this pair had results before this comparison was planned: seed 3"});

  SUBCASE("an earlier plan of the same comparison counts, one of another comparison does not") {
    data.history.insert(data.history.begin(), data.history.front());
    data.history.front().time = "2026-11-19T08:00:00.000Z";
    CHECK(verdict_on(judged(data), "mlp", "train-loss").caveats.empty());
    data.history.front().compare.front().baseline = "ddp";
    CHECK(texts_of(verdict_on(judged(data), "mlp", "train-loss"), "EXPLORATORY").size() == 1);
  }
  SUBCASE("the order of the entries does not matter, only their times") {
    data.history.push_back(data.history.front());
    data.history.back().time = "2026-11-19T08:00:00.000Z";
    CHECK(verdict_on(judged(data), "mlp", "train-loss").caveats.empty());
  }
  SUBCASE("under another label the arm was not planned") {
    data.history.insert(data.history.begin(), data.history.front());
    data.history.front().time = "2026-11-19T08:00:00.000Z";
    data.history.front().strategies.assign(data.history.front().keys.size(), "another label");
    CHECK(texts_of(verdict_on(judged(data), "mlp", "train-loss"), "EXPLORATORY").size() == 1);
  }
}

TEST_CASE("if an experiment that was planned earlier says another word of the same runs, both are shown") {
  ReportData first = one_model();
  set_final(first, "mlp", "single", "validation_accuracy", [](int) { return 0.9; });
  set_final(first, "mlp", "ddp", "validation_accuracy", [](int seed) { return 0.902 + 0.001 * (seed % 2); });
  first.experiment = "first";
  first.history.clear();
  plan_again(first, keys_of_seeds(first, 0, 4));
  first.history.front().time = "2026-11-19T08:00:00.000Z";
  for (const char* strategy : {"single", "ddp"}) launch_all(first, strategy, "2026-11-20T08:00:00.000Z");
  ReportData second = first;
  second.experiment = "second";
  second.history.front().time = "2026-11-21T08:00:00.000Z";
  second.history.front().compare.front().margins.accuracy_points = 0.1;
  second.plan.compare.front().margins.accuracy_points = 0.1;
  second.earlier_experiments.push_back(first);
  REQUIRE(verdict_on(judged(first), "mlp", "validation-accuracy").kind == VerdictKind::no_change);
  const auto cells = judged(second);
  const TestedVerdict verdict = verdict_on(cells, "mlp", "validation-accuracy");
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(contains(texts_of(verdict, "EXPLORATORY").at(0),
                 "; experiment first was planned first and says NO CHANGE"));
  CHECK_FALSE(contains(texts_of(verdict_on(cells, "mlp", "train-loss"), "EXPLORATORY").at(0), "first"));
  CHECK(verdict_on(judged(first), "mlp", "validation-accuracy").caveats.empty());
}

TEST_CASE("an arm whose program changed under its name counts its versions") {
  ReportData data = one_model(6);
  data.history.clear();
  plan_again(data, keys_of_seeds(data, 0, 5));
  std::vector<std::string> later;
  for (db::RunSummary& run : data.runs) {
    if (run.strategy == "ddp") run.files = run.seed < 3 ? "version 1" : "version 2";
    if (run.strategy == "single" || run.seed >= 3) later.push_back(run.run_key);
  }
  plan_again(data, later);
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "train-loss");
  CHECK(texts_of(verdict, "VERSIONS") ==
        Texts{"second version of arm ddp: one other version had results before"});
  for (int seed = 0; seed < 3; ++seed) set_status(data, "mlp", "ddp", seed, "failed");
  CHECK(verdict_on(judged(data), "mlp", "train-loss").caveats.empty());  // it had no result
}

}  // namespace
}  // namespace trainyard::reports
