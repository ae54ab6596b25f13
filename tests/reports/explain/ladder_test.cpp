// The steps from one process to an arm, and what each does.
#include "reports/explain/ladder.h"

#include <map>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {

namespace {

db::RunSummary run_with(const std::string& kind, std::int64_t replicas, std::int64_t batch, double rate) {
  db::RunSummary run;
  run.strategy = run.kind = kind;
  run.replicas = replicas;
  run.axes = {{"model", std::string("mlp")},
              {"global_batch", batch},
              {"batch", batch},
              {"learning_rate", rate},
              {"replicas", replicas}};
  return run;
}

std::string cell(const Table& table, std::size_t row, std::size_t column) {
  return shown(table.rows.at(row).at(column));
}

}  // namespace

TEST_CASE("the steps change one value each, and each keeps the changes before it") {
  const auto ladder = ladder_between(run_with("single", 1, 64, 0.1), run_with("ddp", 2, 128, 0.1));
  REQUIRE(ladder.rungs.size() == 2);
  CHECK(ladder.rungs[0].name == "in-parts");
  CHECK(ladder.rungs[1].settings.size() == 2);
  CHECK(std::get<std::int64_t>(ladder.rungs[1].settings[1].second) == 128);
  REQUIRE(ladder.remedies.size() == 2);
  CHECK(std::get<double>(ladder.remedies[0].settings.back().second) == doctest::Approx(0.2));
  CHECK(ladder.remedies[1].settings.back().first == "warmup_steps");

  REQUIRE(ladder.of_times.size() == 2);  // a process with 64 samples is the baseline
  CHECK(ladder.of_times[0].name == "unconnected");
  CHECK(ladder.of_times[1].name == "in-step");
  const auto smaller = ladder_between(run_with("single", 1, 64, 0.1), run_with("ddp", 2, 64, 0.1)).of_times;
  REQUIRE(smaller.size() == 3);
  CHECK(std::get<std::int64_t>(smaller[0].settings.back().second) == 32);

  const auto scaled = ladder_between(run_with("single", 1, 64, 0.1), run_with("ddp", 2, 128, 0.2));
  CHECK(scaled.rungs.back().name == "scaled-rate");
  CHECK(scaled.remedies.size() == 1);  // warm-up

  CHECK(ladder_between(run_with("single", 1, 64, 0.1), run_with("ddp", 2, 64, 0.1)).remedies.empty());
  CHECK_THROWS_WITH_AS(ladder_between(run_with("ddp", 2, 64, 0.1), run_with("ddp", 2, 64, 0.1)),
                       doctest::Contains("begins with one process"), UserError);
  CHECK_THROWS_WITH_AS(ladder_between(run_with("single", 1, 64, 0.1), run_with("foreign", 2, 64, 0.1)),
                       doctest::Contains("needs a strategy of trainyard"), UserError);
}

TEST_CASE("the effects of the steps add up to the arm, and what is missing is not explained") {
  ReportData data =
      invented({.models = {"mlp"}, .strategies = {"single", "in-parts", "whole-batch", "ddp"}, .seeds = 4});
  const auto set = [&](const char* strategy, double accuracy) {
    set_final(data, "mlp", strategy, "validation_accuracy",
              [=](int seed) { return accuracy + 0.001 * (seed % 2); });
    set_final(data, "mlp", strategy, "validation_loss",
              [=](int seed) { return 1 - accuracy + 0.01 * (seed % 2); });
  };
  const experiments::Ladder ladder{.baseline = "single",
                                   .rungs = {{"in-parts", {{"gradient_accumulation", std::int64_t{2}}}},
                                             {"whole-batch", {{"batch", std::int64_t{128}}}}},
                                   .arm = "ddp",
                                   .remedies = {}};
  set("single", 0.90);
  set("in-parts", 0.899);
  set("whole-batch", 0.89);
  set("ddp", 0.89);
  Table table = ladder_table(data, ladder);
  CHECK(cell(table, 0, 0) == "in-parts (gradient_accumulation = 2)");
  CHECK(contains(cell(table, 0, 1), "−0.10 ±"));
  CHECK(contains(cell(table, 1, 1), "−0.90 ±"));
  CHECK(contains(cell(table, 2, 1), "−1.00 ±"));  // all steps
  CHECK(contains(cell(table, 3, 1), "−1.00 ±"));  // the arm
  CHECK(contains(cell(table, 4, 1), "0.00 ±"));
  CHECK(table.notes.size() == 2);

  set("ddp", 0.85);
  table = ladder_table(data, ladder);
  CHECK(contains(table.notes.front(), "not explained: the steps make less than 80 % of the change of"));
}

TEST_CASE("the times of a ladder lead from a part of an epoch of the baseline to an epoch of the arm") {
  ReportData data = invented(
      {.models = {"mlp"}, .strategies = {"single", "part-of-batch", "unconnected", "ddp"}, .seeds = 4});
  for (const auto& [strategy, seconds] : std::map<std::string, double>{
           {"single", 2}, {"part-of-batch", 2.2}, {"unconnected", 2.6}, {"ddp", 1.5}})
    set_final(data, "mlp", strategy, "epoch_train_seconds",
              [=](int seed) { return seconds + 0.01 * (seed % 2); });
  experiments::Ladder ladder{.baseline = "single", .rungs = {}, .arm = "ddp", .remedies = {}};
  CHECK(ladder_of_times(data, ladder).rows.empty());
  ladder.of_times = {{"part-of-batch", {{"batch", std::int64_t{32}}}},
                     {"unconnected", {{"kind", std::string("independent")}}}};
  ladder.replicas = 2;
  const Table table = ladder_of_times(data, ladder);
  REQUIRE(table.rows.size() == 5);
  CHECK(cell(table, 0, 0) == "single / 2");
  CHECK(contains(cell(table, 0, 1), "1.00"));
  CHECK(contains(cell(table, 1, 1), "+0.10"));
  CHECK(contains(cell(table, 2, 1), "+0.20"));
  CHECK(contains(cell(table, 3, 1), "+0.20"));
  CHECK(contains(cell(table, 4, 1), "+0.50"));
}

}  // namespace trainyard::reports
