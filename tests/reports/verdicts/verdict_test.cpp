// Verdicts on invented results: verdicts, families, and excluded runs with reasons.
#include "reports/verdicts/verdict.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/text.h"
#include "reports/analysis/analysis.h"
#include "reports/answer/verdict_text.h"
#include "reports/content/content.h"
#include "reports/content/paper_tables.h"
#include "reports/format/number_text.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "reports/statistics/power_analysis.h"
#include "tests/reports/support/judged.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

TEST_CASE("reference case R3 improves the training time, in percent and as a ratio") {
  const std::vector<double> a{100, 102, 98, 101, 99};
  const std::vector<double> b{55, 56.5, 54, 55.5, 54.5};
  ReportData data = one_model();
  set_final(data, "mlp", "single", "epoch_train_seconds",
            [&](int seed) { return a[static_cast<std::size_t>(seed)]; });
  set_final(data, "mlp", "ddp", "epoch_train_seconds",
            [&](int seed) { return b[static_cast<std::size_t>(seed)]; });
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "train-seconds");
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(verdict.n == 5);
  // 1/1.8149208364954 − 1, with the ends 1/1.8220121828739 − 1 and 1/1.8078570899288 − 1.
  REQUIRE(verdict.ci95);
  CHECK(verdict.effect.value() == doctest::Approx(100 * (1 / 1.8149208364954 - 1)).epsilon(1e-9));
  CHECK(verdict.ci95->low == doctest::Approx(100 * (1 / 1.8220121828739 - 1)).epsilon(1e-9));
  CHECK(verdict.ci95->high == doctest::Approx(100 * (1 / 1.8078570899288 - 1)).epsilon(1e-9));
  CHECK(effect_text(verdict) == "−44.9 %");
}

TEST_CASE("reference case R4 leaves the validation accuracy unchanged") {
  const std::vector<double> d{-.10, .07, -.07, .03, -.10};
  ReportData data = one_model();
  set_final(data, "mlp", "single", "validation_accuracy", [](int) { return 0.95; });
  set_final(data, "mlp", "ddp", "validation_accuracy",
            [&](int seed) { return 0.95 + d[static_cast<std::size_t>(seed)] / 100; });
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "validation-accuracy");
  CHECK(verdict.kind == VerdictKind::no_change);
  CHECK(verdict.three_sided.equivalent == doctest::Approx(9.5100107918e-5).epsilon(1e-6));
  CHECK(verdict.adjusted_p == verdict.three_sided.equivalent);
}

TEST_CASE("a slower arm deteriorates, and so does one with a higher loss") {
  ReportData data = one_model();
  set_final(data, "mlp", "ddp", "epoch_train_seconds", [](int seed) { return 4.0 + 0.01 * seed; });
  set_final(data, "mlp", "single", "validation_loss", [](int seed) { return 1.0 + 0.001 * seed; });
  set_final(data, "mlp", "ddp", "validation_loss", [](int seed) { return 1.2 + 0.001 * (seed % 2); });
  CHECK(verdict_on(judged(data), "mlp", "train-seconds").kind == VerdictKind::deteriorates);
  const TestedVerdict loss = verdict_on(judged(data), "mlp", "validation-loss");
  CHECK(loss.kind == VerdictKind::deteriorates);
  CHECK(loss.scale == Scale::log_ratio);
  CHECK(loss.delta == doctest::Approx(std::log(1.02)));
}

TEST_CASE("a small loss is compared by differences with the absolute margin") {
  ReportData data = one_model();
  // The ratio margin (1.02 − 1) · 0.2 = 0.004 is less than 0.005. A change of 10 % is 0.02, which is more.
  set_final(data, "mlp", "single", "validation_loss", [](int seed) { return 0.2 + 0.0001 * seed; });
  set_final(data, "mlp", "ddp", "validation_loss", [](int seed) { return 0.203 + 0.0001 * (seed % 2); });
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "validation-loss");
  CHECK(verdict.scale == Scale::absolute);
  CHECK(verdict.delta == 0.005);
  CHECK(verdict.kind == VerdictKind::no_change);
  CHECK(verdict.effect.value() == doctest::Approx(0.00284).epsilon(0.01));
}

// Differences of mean 0.8 points and standard error 0.1: the 95 % interval [0.522, 1.078] is above the margin of 0.5.
TEST_CASE("the interval that decides is there if the 95 % interval contradicts the word") {
  ReportData data = invented({.models = {"mlp", "cnn", "vgg11"}, .seeds = 5});
  for (const char* model : {"mlp", "cnn", "vgg11"}) {
    set_final(data, model, "single", "validation_accuracy", [](int) { return 0.9; });
    const double spread = std::string(model) == "mlp" ? 1 : 20;
    set_final(data, model, "ddp", "validation_accuracy",
              [&](int seed) { return 0.908 + spread * (seed - 2) * 0.1 * std::sqrt(2.0) / 100; });
  }
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "validation-accuracy");
  CHECK(verdict.kind == VerdictKind::inconclusive);
  REQUIRE(verdict.ci95);
  CHECK(verdict.ci95->low > 0.5);
  REQUIRE(verdict.decision);
  CHECK(verdict.decision->confidence == doctest::Approx(1 - 0.05 / 3));                      // three cells
  CHECK(verdict.decision->interval.low == doctest::Approx(0.8 - 3.9607864827701835 * 0.1));  // SciPy's t.ppf
  CHECK(verdict.decision->interval.high == doctest::Approx(0.8 + 3.9607864827701835 * 0.1));
  CHECK(contains(remarks_of(verdict), "the 98.33 % interval [+0.40, +1.20] decides, by Holm's correction"));
  const Content content = compose(data);
  CHECK(contains(page_html(content, {}), "the 98.33 % interval [+0.40, +1.20] decides"));
  CHECK(std::get<Effects>(content.effects.front().front().picture)
            .columns.front()
            .effects.front()
            ->ticks.size() == 2);
  CHECK_FALSE(verdict_on(judged(data), "cnn", "validation-accuracy").decision);
}

TEST_CASE("NO CHANGE is decided by the interval of the test of equivalence, which is narrower") {
  ReportData data = one_model();
  set_final(data, "mlp", "single", "validation_accuracy", [](int) { return 0.9; });
  // standard error 0.1, mean 0.24: the 95 % interval reaches 0.518, that of 1 − 2 · 0.05 reaches 0.453
  set_final(data, "mlp", "ddp", "validation_accuracy",
            [&](int seed) { return 0.9024 + (seed - 2) * 0.1 * std::sqrt(2.0) / 100; });
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "validation-accuracy");
  CHECK(verdict.kind == VerdictKind::no_change);
  CHECK(verdict.ci95->high > 0.5);
  REQUIRE(verdict.decision);
  CHECK(verdict.decision->confidence == doctest::Approx(0.9));
  CHECK(verdict.decision->interval.high < 0.5);
}

TEST_CASE("a cell with an unfinished planned run is INTERIM, with effect and interval") {
  ReportData data = one_model();
  set_status(data, "mlp", "ddp", 4, "running");
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "train-seconds");
  CHECK(verdict.kind == VerdictKind::interim);
  CHECK(verdict.reason.text == "1 planned run not finished yet");
  CHECK(verdict.n == 4);
  CHECK(verdict.estimate.has_value());
}

TEST_CASE("a failed run is dropped and named, and its cell is judged without it") {
  ReportData data = one_model();
  set_status(data, "mlp", "ddp", 4, "failed");
  run_of(data, "mlp", "ddp", 4).failure = "out of memory";
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "train-seconds");
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(verdict.n == 4);
  REQUIRE(verdict.dropped.size() == 1);
  CHECK(verdict.dropped.front() == "seed 4: ddp failed: out of memory");
}

TEST_CASE("each p is labelled with its hypothesis of the three-sided test") {
  ReportData data = one_model();
  const auto change_times = [&](double factor) {
    set_final(data, "mlp", "single", "epoch_train_seconds", [](int seed) { return 100.0 + seed; });
    set_final(data, "mlp", "ddp", "epoch_train_seconds",
              [=](int seed) { return factor * (100.3 + 1.01 * seed); });
    return verdict_on(judged(data), "mlp", "train-seconds");
  };
  CHECK(change_times(0.5).hypothesis == "better than the margin");
  CHECK(change_times(1.0).hypothesis == "inside the margin");
  CHECK(change_times(2.0).hypothesis == "worse than the margin");
  set_status(data, "mlp", "ddp", 0, "running");  // INTERIM has no p-value
  CHECK(change_times(2.0).hypothesis.empty());
}

TEST_CASE("fewer than three pairs are INCONCLUSIVE with that reason") {
  const ReportData data = one_model(2);
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "train-seconds");
  CHECK(verdict.kind == VerdictKind::inconclusive);
  CHECK(verdict.reason.text == "only 2 pairs, at least 3 are needed");
  CHECK_FALSE(verdict.tested);
}

TEST_CASE("equal differences are tested by their signs, and identical values need a parity check") {
  ReportData data = one_model();
  for (const char* arm : {"single", "ddp"}) {
    set_final(data, "mlp", arm, "test_accuracy", [](int seed) { return 0.9 + 0.01 * seed; });
  }
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "test-accuracy");
  CHECK(verdict.kind == VerdictKind::no_change);
  CHECK(verdict.constant);
  CHECK(verdict.p == 1.0 / 32);
  CHECK(verdict.reason.text ==
        "all 5 differences are equal, so their signs were tested; up to 45 % of other seeds may differ");
  CHECK(verdict.caveats.empty());
  ReportData few = one_model(3);
  for (const char* arm : {"single", "ddp"})
    set_final(few, "mlp", arm, "test_accuracy", [](int seed) { return 0.9 + 0.01 * seed; });
  CHECK(verdict_on(judged(few), "mlp", "test-accuracy").kind == VerdictKind::inconclusive);
  few.probes[run_of(few, "mlp", "ddp", 0).run_key] = {};
  const TestedVerdict identical = verdict_on(judged(few), "mlp", "test-accuracy");
  CHECK(identical.kind == VerdictKind::no_change);
  REQUIRE(identical.caveats.size() == 1);
  CHECK(identical.caveats[0].mark == "IDENTICAL");
  CHECK(identical.caveats[0].text ==
        "identical in 3 of 3 seeds; at 95 % confidence fewer than 63 % of seeds differ");
}

// Sets differences of validation accuracy around δ = 0.5 points, with 2p₊ = 0.029867 (SciPy). One cell alone
// decides, and two together do not.
void set_borderline(ReportData& data, const std::string& model) {
  const std::vector<double> d{0.55, 0.60, 0.65, 0.70, 0.85};
  set_final(data, model, "single", "validation_accuracy", [](int) { return 0.9; });
  set_final(data, model, "ddp", "validation_accuracy",
            [&](int seed) { return 0.9 + d[static_cast<std::size_t>(seed)] / 100; });
}

TEST_CASE("Holm corrects over the cells of one metric and one arm") {
  ReportData alone = one_model();
  set_borderline(alone, "mlp");
  const TestedVerdict single = verdict_on(judged(alone), "mlp", "validation-accuracy");
  CHECK(single.three_sided.cell == doctest::Approx(0.029866968372355415).epsilon(1e-6));
  CHECK(single.kind == VerdictKind::improves);
  CHECK(single.adjusted_p == single.three_sided.cell);

  ReportData two = invented({.models = {"mlp", "cnn"}});
  set_borderline(two, "mlp");
  set_borderline(two, "cnn");
  const TestedVerdict corrected = verdict_on(judged(two), "mlp", "validation-accuracy");
  CHECK(corrected.adjusted_p == doctest::Approx(2 * single.three_sided.cell));
  CHECK(corrected.kind == VerdictKind::inconclusive);
}

TEST_CASE("each arm is its own family, and an INTERIM cell counts in its family") {
  ReportData data = invented({.models = {"mlp", "cnn"}, .strategies = {"single", "ddp", "other"}});
  set_borderline(data, "mlp");
  const std::vector<CellVerdicts> cells = judged(data);
  CHECK(verdict_on(cells, "mlp", "validation-accuracy").adjusted_p <
        0.05);  // the p-value of cnn is smaller, so this one is not doubled
  set_status(data, "cnn", "ddp", 0, "planned");
  const TestedVerdict beside_interim = verdict_on(judged(data), "mlp", "validation-accuracy");
  CHECK(beside_interim.adjusted_p == doctest::Approx(2 * beside_interim.three_sided.cell));
}

TEST_CASE("an inconclusive cell has the number of seeds that would be needed, as a planning value") {
  ReportData data = one_model();
  const std::vector<double> d{-0.9, 0.6, 0.1, -0.4, 0.7};
  set_final(data, "mlp", "single", "validation_accuracy", [](int) { return 0.9; });
  set_final(data, "mlp", "ddp", "validation_accuracy",
            [&](int seed) { return 0.9 + d[static_cast<std::size_t>(seed)] / 100; });
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "validation-accuracy");
  CHECK(verdict.kind == VerdictKind::inconclusive);
  REQUIRE(verdict.seeds_needed.has_value());
  CHECK(*verdict.seeds_needed > 5);
  CHECK(verdict.reason.text.find("plan about") != std::string::npos);
}

TEST_CASE("if 100 seeds are not enough for the measured spread, the fewest are named, for the least spread") {
  ReportData data = one_model();
  const std::vector<double> d{-5.2, 3.1, 0.6, -2.4, 4.2};
  set_final(data, "mlp", "single", "validation_accuracy", [](int) { return 0.9; });
  const auto with_spread = [&](double scale) {
    set_final(data, "mlp", "ddp", "validation_accuracy",
              [&](int seed) { return 0.9 + scale * d[static_cast<std::size_t>(seed)] / 100; });
    return verdict_on(judged(data), "mlp", "validation-accuracy");
  };
  const TestedVerdict some = with_spread(0.5);
  CHECK(some.cannot_be_resolved);
  REQUIRE(some.seeds_needed.has_value());
  CHECK(some.seeds_needed ==
        seeds_needed(some.estimate->mean, lowest_spread(some.estimate->spread, 4), 0.5, some.alpha));
  // both arms train for 15 s per seed, and five seeds have finished
  CHECK(some.reason.text ==
        fmt::format("too few seeds for this margin: plan at least {} in total, about {} more",
                    *some.seeds_needed, duration_text(30.0 * (*some.seeds_needed - 5))));
  CHECK(contains(terminal_table(compose(data)),
                 fmt::format("(at least {} seeds are needed)", *some.seeds_needed)));
  const TestedVerdict none = with_spread(1.5);
  CHECK_FALSE(none.seeds_needed.has_value());
  CHECK(none.reason.text == "too few seeds for this margin: plan more than 100 in total");
  CHECK(contains(terminal_table(compose(data)), "more than 100 seeds are needed"));
}

TEST_CASE("strategies that differ by rounding only are called identical by construction") {
  ReportData data = one_model();
  set_final(data, "mlp", "single", "validation_accuracy", [](int seed) { return 0.9 + 0.001 * seed; });
  set_final(data, "mlp", "ddp", "validation_accuracy",
            [](int seed) { return 0.9 + 0.001 * seed + 1e-8 * (seed % 2); });
  const TestedVerdict same = verdict_on(judged(data), "mlp", "validation-accuracy");
  CHECK(same.kind == VerdictKind::no_change);
  REQUIRE(same.verified);
  CHECK(same.identical);
  CHECK(contains(remarks_of(same), "identical by construction, apart from rounding"));
  set_final(data, "mlp", "ddp", "validation_accuracy",
            [](int seed) { return 0.9 + 0.001 * seed + 1e-4 * (seed % 2); });
  CHECK_FALSE(verdict_on(judged(data), "mlp", "validation-accuracy").identical);
}

TEST_CASE("unpaired arms are compared with Welch's test") {
  ReportData data = one_model();
  data.plan.compare.front().pair.clear();
  const TestedVerdict verdict = verdict_on(judged(data), "mlp", "train-seconds");
  REQUIRE(verdict.estimate.has_value());
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(verdict.estimate->freedom > 4);  // a paired test would have exactly 4
}

TEST_CASE("another varied axis makes separate cells, with unique safe names") {
  ReportData data = one_model();
  data.plan.varied.emplace_back("batch");
  const ReportData other = one_model();
  for (db::RunSummary run : other.runs) {
    run.run_key[0] = 'X';
    run.axes["batch"] = std::int64_t{64};
    data.history.front().keys.push_back(run.run_key);
    data.runs.push_back(run);
  }
  const std::vector<CellVerdicts> cells = judged(data);
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].cell.label == "MLP, batch 128");
  CHECK(cells[1].cell.label == "MLP, batch 64");
  CHECK(cells[0].cell.slug == "mlp-batch-128");
  CHECK(slug_of("../../etc/passwd") == "etc-passwd");
}

TEST_CASE("runs of an older plan are kept, even if only a part of the file was run last") {
  ReportData data = invented({.models = {"mlp", "cnn"}});
  plan_again(data, {run_of(data, "mlp", "ddp", 0).run_key});  // run --where
  CHECK(judged(data).size() == 2);
  CHECK(verdict_on(judged(data), "mlp", "train-seconds").n == 5);
  CHECK(verdict_on(judged(data), "cnn", "train-seconds").n == 5);
}

TEST_CASE("an arm that is planned again with other training has only the new runs") {
  ReportData data = one_model(6);
  for (db::RunSummary& run : data.runs) run.axes["epochs"] = std::int64_t{run.seed < 3 ? 1 : 6};
  plan_again(data, keys_of_seeds(data, 3, 5));
  const std::vector<CellVerdicts> cells = judged(data);
  CHECK(cells.front().cell.baseline.runs.size() == 3);
  CHECK(verdict_on(cells, "mlp", "train-seconds").last_look == 3);
}

TEST_CASE("runs of an earlier version of the user's program are not mixed with those of the latest") {
  ReportData data = one_model(6);
  for (db::RunSummary& run : data.runs)
    if (run.strategy == "ddp") run.files = run.seed < 3 ? "[first version]" : "[second version]";
  plan_again(data, keys_of_seeds(data, 3, 5));
  const std::vector<CellVerdicts> cells = judged(data);
  CHECK(cells.front().cell.arms.front().runs.size() == 3);
  CHECK(verdict_on(cells, "mlp", "train-seconds").n == 3);
}

TEST_CASE(
    "runs with an earlier command are not mixed with the latest, but the seed in a command may differ") {
  ReportData data = one_model(6);
  const auto command = [](const std::string& rate, std::int64_t seed) {
    return R"([["train.py","--lr",")" + rate + R"(","--out","run-)" + std::to_string(seed) + R"("],null])";
  };
  for (db::RunSummary& run : data.runs)
    if (run.strategy == "ddp") run.command = command("0.10", run.seed);
  CHECK(judged(data).front().cell.arms.front().runs.size() == 6);
  for (db::RunSummary& run : data.runs)
    if (run.strategy == "ddp" && run.seed < 3) run.command = command("0.50", run.seed);
  plan_again(data, keys_of_seeds(data, 3, 5));
  CHECK(judged(data).front().cell.arms.front().runs.size() == 3);
  CHECK(verdict_on(judged(data), "mlp", "train-seconds").n == 3);
}

TEST_CASE("an arm that is not in the file any more is not compared") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "ddp", "other"}});
  std::vector<std::string> kept;
  for (const db::RunSummary& run : data.runs)
    if (run.strategy != "other") kept.push_back(run.run_key);
  plan_again(data, kept);
  CHECK(judged(data).front().cell.arms.size() == 2);
  data.history.back().toml = "edited";
  CHECK(judged(data).front().cell.arms.size() == 1);
}

TEST_CASE("any axis is compared, each value with its baseline") {
  const std::map<std::string, std::int64_t> batches{{"single", 128}, {"b64", 64}, {"b32", 32}};
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "b64", "b32"}});
  for (const auto& [arm, batch] : batches) {
    const double ratio = batch == 128 ? 1 : batch == 64 ? 1.5 : 2;
    set_final(data, "mlp", arm, "epoch_train_seconds",
              [&](int seed) { return ratio * (2 + 0.01 * seed + 0.001 * ratio * (seed % 2)); });
    set_final(data, "mlp", arm, "validation_accuracy",
              [&](int seed) { return 0.8 + 0.02 * (ratio - 1) * (1 + 0.01 * (seed % 2)) + 0.001 * seed; });
  }
  data.plan.varied = {"batch", "seed"};
  data.plan.compare.front().axis = "batch";
  data.plan.compare.front().baseline = "128";
  data.history.front().compare = data.plan.compare;
  for (db::RunSummary& run : data.runs) {
    run.axes["batch"] = batches.at(run.strategy);
    run.axes["strategy"] = std::string("single");
    run.strategy = "single";
  }
  const std::vector<CellVerdicts> cells = judge(data, data.plan.compare.front());
  REQUIRE(cells.size() == 1);
  REQUIRE(cells[0].cell.arms.size() == 2);
  CHECK(cells[0].find("32", "train-seconds")->kind == VerdictKind::deteriorates);
  CHECK(cells[0].find("64", "validation-accuracy")->kind == VerdictKind::improves);
}

TEST_CASE("the table of models has validation metrics and train time, and marks a contradiction") {
  ReportData data = one_model();
  set_final(data, "mlp", "ddp", "train_accuracy", [](int seed) { return 0.99 + 0.0001 * seed; });
  set_final(data, "mlp", "single", "train_accuracy", [](int seed) { return 0.95 + 0.0001 * (seed % 2); });
  set_final(data, "mlp", "ddp", "validation_accuracy", [](int seed) { return 0.90 + 0.0001 * seed; });
  set_final(data, "mlp", "single", "validation_accuracy",
            [](int seed) { return 0.95 + 0.0001 * (seed % 2); });
  const Table table = models_table(make_report(data).comparisons.front());
  REQUIRE(table.rows.size() == 1);
  const auto cell = [&](std::size_t column) { return std::get<std::string>(table.rows[0].at(column)); };
  CHECK(cell(0) == "MLP");
  CHECK(cell(1).starts_with("deteriorates (−4.9"));
  CHECK(cell(1).ends_with(" pp) †"));
  CHECK(cell(3).starts_with("improves (−"));
  CHECK(table.notes == std::vector<std::string>{contradiction_note});
}

}  // namespace
}  // namespace trainyard::reports
