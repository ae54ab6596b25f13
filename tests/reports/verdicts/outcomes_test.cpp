// Runs without a number for a test: diverged, without the metric, or with times that do not count.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "reports/answer/verdict_text.h"
#include "tests/reports/support/judged.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

TEST_CASE("an arm deteriorates, without a test, if it diverges where the baseline does not") {
  ReportData data = one_model();
  final_of(data, "mlp", "ddp", 2)["train_loss"] = std::nan("");
  final_of(data, "mlp", "ddp", 2)["validation_loss"] = std::nan("");
  for (const char* metric : {"train-loss", "validation-loss", "validation-accuracy"}) {
    const TestedVerdict verdict = verdict_on(judged(data), "mlp", metric);
    CHECK(verdict.kind == VerdictKind::deteriorates);
    CHECK(verdict.diverged);
    CHECK_FALSE(verdict.tested);
    CHECK(verdict.reason.text.find("diverged") == 0);
  }
  // Times of a diverged run count.
  CHECK(verdict_on(judged(data), "mlp", "train-seconds").n == 5);
}

TEST_CASE("if only the baseline diverges the arm improves, and if both diverge it is INCONCLUSIVE") {
  ReportData data = one_model();
  final_of(data, "mlp", "single", 1)["train_loss"] = std::numeric_limits<double>::infinity();
  CHECK(verdict_on(judged(data), "mlp", "train-loss").kind == VerdictKind::improves);
  final_of(data, "mlp", "ddp", 1)["train_loss"] = std::nan("");
  const std::vector<CellVerdicts> both = judged(data);
  CHECK(verdict_on(both, "mlp", "train-loss").kind == VerdictKind::inconclusive);
  CHECK(verdict_on(both, "mlp", "train-loss").diverged);
}

TEST_CASE("a program that records no loss has not diverged, and has no row for it") {
  ReportData data = one_model();
  for (db::FinalMetrics& final : data.finals)
    for (const char* column : {"train_loss", "validation_loss", "test_loss", "train_accuracy",
                               "validation_accuracy", "test_accuracy"})
      final[db::MetricColumn::named(column)] = std::nan("");
  CHECK(verdict_on(judged(data), "mlp", "train-loss").diverged);
  for (db::RunSummary& run : data.runs) run.without_loss = true;
  const std::vector<CellVerdicts> cells = judged(data);
  CHECK(cells.front().find("ddp", "train-loss") == nullptr);
  CHECK(verdict_on(cells, "mlp", "train-seconds").n == 5);
}

TEST_CASE("an arm that diverges for every seed is an outcome, not an undefined metric") {
  ReportData data = one_model();
  for (const char* arm : {"single", "ddp"}) {
    set_final(data, "mlp", arm, "train_loss", [](int) { return std::nan(""); });
  }
  CHECK(verdict_on(judged(data), "mlp", "train-loss").diverged);
}

TEST_CASE("a metric that a model does not have has no verdict") {
  ReportData data = invented({.models = {"something new"}});
  for (const char* arm : {"single", "ddp"}) {
    set_final(data, "something new", arm, "train_accuracy", [](int) { return std::nan(""); });
    set_final(data, "something new", arm, "validation_accuracy", [](int) { return std::nan(""); });
    set_final(data, "something new", arm, "test_accuracy", [](int) { return std::nan(""); });
  }
  const std::vector<CellVerdicts> cells = judged(data);
  CHECK(cells.front().find("ddp", "train-accuracy") == nullptr);
  CHECK(cells.front().find("ddp", "train-loss") != nullptr);
}

TEST_CASE("other processes spoil times, and fewer replicas also processor time, but neither spoils a loss") {
  db::FinalMetrics final;
  final.times_count = false;
  final.times_problem = "2 of 3 replicas: rank 1 was killed in attempt 1";
  Observation run;
  run.final = &final;
  for (const bool fewer : {false, true}) {
    final.fewer_replicas = fewer;
    CHECK_FALSE(value_counts(run, find_metric("train-seconds")));
    CHECK(value_counts(run, find_metric("train-processor-seconds")) == !fewer);
    CHECK(value_counts(run, find_metric("train-loss")));
  }
}

TEST_CASE("times that do not count are in no time verdict, and their runs are named") {
  ReportData data = one_model();
  const auto spoil = [&](const char* strategy, int seed, double share) {
    db::FinalMetrics& final = final_of(data, "mlp", strategy, seed);
    final.times_count = false;
    final.other_share = share;
    final.others_limit = 0.02;
    final.times_problem = fmt::format("other processes took {:.0f} % of its cores (limit 2 %)", 100 * share);
  };
  spoil("ddp", 0, 0.31);
  const TestedVerdict time = verdict_on(judged(data), "mlp", "train-seconds");
  CHECK(time.n == 4);
  REQUIRE(time.dropped.size() == 1);
  CHECK(time.dropped.front() ==
        "seed 0: ddp: other processes took 31 % of its cores (limit 2 %): its times do not count");
  CHECK(verdict_on(judged(data), "mlp", "train-loss").n == 5);
  for (int seed = 0; seed < 5; ++seed) spoil("ddp", seed, 0.32 + 0.1 * seed);
  const TestedVerdict none = verdict_on(judged(data), "mlp", "train-seconds");
  CHECK(none.kind == VerdictKind::no_data);
  CHECK(none.reason.text ==
        "the times of all five runs of ddp do not count (other processes took 32 – 72 % of their cores)");
  for (int seed = 0; seed < 5; ++seed) spoil("single", seed, 0.78);
  final_of(data, "mlp", "single", 4).other_share = NAN;
  final_of(data, "mlp", "single", 4).times_problem = "other runs shared the host";
  CHECK(
      verdict_on(judged(data), "mlp", "train-seconds").reason.text ==
      "the times of all runs of single and ddp do not count (other processes took 32 – 78 % of their cores; "
      "other runs shared the host)");
}

TEST_CASE("processor times count beside other processes, but not with more ranks than devices") {
  ReportData data = one_model();
  set_final(data, "mlp", "single", "epoch_processor_seconds", [](int seed) { return 2 + 0.01 * seed; });
  set_final(data, "mlp", "ddp", "epoch_processor_seconds", [](int seed) { return 1 + 0.01 * seed; });
  for (db::FinalMetrics& final : data.finals) final.times_count = false;
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "train-processor-seconds");
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(verdict.n == 5);
  CHECK(verdict_on(judged(data), "mlp", "train-seconds").kind == VerdictKind::no_data);
}

TEST_CASE("more ranks than devices have a time word, and the remark has both numbers") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "mp-ddp"}});
  const auto on = [&](const char* metric) { return verdict_on(judged(data), "mlp", metric, "mp-ddp"); };
  const VerdictKind before = on("train-seconds").kind;
  for (int seed = 0; seed < 5; ++seed) {
    Launched& launched = data.launched.at(run_of(data, "mlp", "mp-ddp", seed).run_key);
    launched.devices_shared = true;
    launched.ranks = 4;
    launched.devices = 2;
  }
  for (const char* metric : {"train-seconds", "validation-seconds"})
    CHECK(contains(remarks_of(on(metric)), "mp-ddp: four ranks on two devices"));
  CHECK(on("train-seconds").kind == before);
  CHECK_FALSE(contains(remarks_of(on("validation-accuracy")), "devices"));
}

TEST_CASE("ranks with more threads than their share of the cores are named with their threads") {
  Launched launched;
  launched.devices_shared = true;
  launched.ranks = launched.devices = 2;
  launched.circumstances.threads_per_rank = 2;
  CHECK(sharing_text(launched) == "two ranks with two threads each on two devices");
  launched.devices_shared = false;
  CHECK(sharing_text(launched).empty());
}

TEST_CASE("if all runs of an arm failed, it has NO DATA, with the cause once") {
  ReportData data = one_model(3);
  for (int seed = 0; seed < 3; ++seed) {
    set_status(data, "mlp", "ddp", seed, "failed");
    run_of(data, "mlp", "ddp", seed).failure = "exit code 1";
  }
  const std::vector<CellVerdicts> cells = judged(data);
  CHECK(cells.front().verdicts.size() > 5);
  for (const TestedVerdict& verdict : cells.front().verdicts) {
    CHECK(verdict.kind == VerdictKind::no_data);
    CHECK(verdict.reason.text == "all three runs of ddp failed");
    CHECK(verdict.dropped.size() == 3);
    CHECK(remarks_of(verdict) ==
          "all three runs of ddp failed; left out: seed 0, seed 1, seed 2: ddp failed: exit code 1");
  }
}

TEST_CASE("NO DATA names the arm and what is missing") {
  ReportData data = one_model(2);
  const auto reason = [&] {
    const TestedVerdict verdict = verdict_on(judged(data), "mlp", "validation-loss");
    CHECK(verdict.kind == VerdictKind::no_data);
    return verdict.reason.text;
  };
  set_final(data, "mlp", "ddp", "validation_loss", [](int) { return std::nan(""); });
  set_final(data, "mlp", "ddp", "validation_accuracy", [](int) { return std::nan(""); });
  CHECK(reason() == "both runs of ddp recorded no validation loss");
  set_status(data, "mlp", "ddp", 0, "failed");
  CHECK(reason() == "no run of ddp has a value: one failed, one recorded no validation loss");
}

TEST_CASE("arms that failed in different pairs have NO DATA, because no pair is left") {
  ReportData data = one_model(2);
  set_status(data, "mlp", "ddp", 0, "failed");
  set_status(data, "mlp", "single", 1, "failed");
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "validation-loss");
  CHECK(verdict.kind == VerdictKind::no_data);
  CHECK(verdict.reason.text == "no pair of runs has a value in both arms");
  CHECK(verdict.dropped.size() == 2);
}

TEST_CASE("times from different machines are not compared") {
  ReportData data = one_model();
  data.launched[run_of(data, "mlp", "ddp", 3).run_key].circumstances.host = "another";
  CHECK(verdict_on(judged(data), "mlp", "train-seconds").n == 4);
  CHECK(verdict_on(judged(data), "mlp", "validation-accuracy").n == 5);
}

}  // namespace
}  // namespace trainyard::reports
