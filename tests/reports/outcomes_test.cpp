// Runs that are no numbers for a test: diverged, without the metric, with times that do not count.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "judged.h"

namespace trainyard::reports {
namespace {

using Final = db::FinalMetrics;

TEST_CASE("an arm that diverges where the baseline does not deteriorates, outside the test") {
  ReportData data = one_model();
  final_of(data, "mlp", "ddp", 2).train_loss = std::nan("");
  final_of(data, "mlp", "ddp", 2).validation_loss = std::nan("");
  for (const char* metric : {"train-loss", "validation-loss", "validation-accuracy"}) {
    const Verdict verdict = verdict_on(judged(data), "mlp", metric);
    CHECK(verdict.word == Word::deteriorates);
    CHECK(verdict.diverged);
    CHECK_FALSE(verdict.tested);
    CHECK(verdict.reason.find("diverged") == 0);
  }
  // times of a diverged run are times
  CHECK(verdict_on(judged(data), "mlp", "train-seconds").n == 5);
}

TEST_CASE("a baseline that diverges alone improves, both diverging is INCONCLUSIVE") {
  ReportData data = one_model();
  final_of(data, "mlp", "single", 1).train_loss = std::numeric_limits<double>::infinity();
  CHECK(verdict_on(judged(data), "mlp", "train-loss").word == Word::improves);
  final_of(data, "mlp", "ddp", 1).train_loss = std::nan("");
  const std::vector<CellVerdicts> both = judged(data);
  CHECK(verdict_on(both, "mlp", "train-loss").word == Word::inconclusive);
  CHECK(verdict_on(both, "mlp", "train-loss").diverged);
}

TEST_CASE("an arm that diverges for every seed is an outcome, not a metric that is not defined") {
  ReportData data = one_model();
  for (const char* arm : {"single", "ddp"}) {
    set_final(data, "mlp", arm, &Final::train_loss, [](int) { return std::nan(""); });
  }
  CHECK(verdict_on(judged(data), "mlp", "train-loss").diverged);
}

TEST_CASE("a metric that a model lacks has no verdict") {
  ReportData data = invented({.models = {"something new"}});
  for (const char* arm : {"single", "ddp"}) {
    for (double Final::*metric :
         {&Final::train_accuracy, &Final::validation_accuracy, &Final::test_accuracy}) {
      set_final(data, "something new", arm, metric, [](int) { return std::nan(""); });
    }
  }
  const std::vector<CellVerdicts> cells = judged(data);
  CHECK(cells.front().find("ddp", "train-accuracy") == nullptr);
  CHECK(cells.front().find("ddp", "train-loss") != nullptr);
}

TEST_CASE("times that do not count enter no time verdict and are named") {
  ReportData data = one_model();
  final_of(data, "mlp", "ddp", 0).times_count = false;
  const Verdict time = verdict_on(judged(data), "mlp", "train-seconds");
  CHECK(time.n == 4);
  REQUIRE(time.dropped.size() == 1);
  CHECK(time.dropped.front().find("seed 0: ddp shared the host") == 0);
  CHECK(verdict_on(judged(data), "mlp", "train-loss").n == 5);
  for (int seed = 0; seed < 5; ++seed) final_of(data, "mlp", "ddp", seed).times_count = false;
  CHECK(verdict_on(judged(data), "mlp", "train-seconds").reason.starts_with("times do not count"));
}

TEST_CASE("times from different machines are not compared") {
  ReportData data = one_model();
  data.launched[run_of(data, "mlp", "ddp", 3).run_key].circumstances.host = "another";
  CHECK(verdict_on(judged(data), "mlp", "train-seconds").n == 4);
  CHECK(verdict_on(judged(data), "mlp", "validation-accuracy").n == 5);
}

}  // namespace
}  // namespace trainyard::reports
