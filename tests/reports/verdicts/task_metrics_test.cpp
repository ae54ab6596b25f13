// Six models of three tasks on one page: titles, metrics of single tasks, and expectations.
#include <algorithm>
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "reports/answer/verdict_text.h"
#include "reports/draw/svg.h"
#include "reports/format/number_text.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "reports/results/sanity_checks.h"
#include "reports/verdicts/verdict.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

// The verdict on ddp in the only cell.
TestedVerdict verdict_on(const ReportData& data, const std::string& metric) {
  const std::vector<CellVerdicts> cells = judge(data, data.plan.compare.front());
  const TestedVerdict* verdict = cells.front().find("ddp", metric);
  REQUIRE(verdict != nullptr);
  return *verdict;
}

TEST_CASE("a perplexity is compared by the ratio of the loss, whatever its size") {
  ReportData data = invented({.models = {"seq2seq"}});
  set_final(data, "seq2seq", "single", "test_perplexity", [](int seed) { return 30 + 0.01 * seed; });
  set_final(data, "seq2seq", "ddp", "test_perplexity", [](int seed) { return 30.3 + 0.01 * (seed % 2); });
  const TestedVerdict verdict = verdict_on(data, "test-perplexity");
  CHECK(verdict.scale == Scale::log_ratio);
  CHECK(verdict.delta == doctest::Approx(std::log(1.02)));
  CHECK(verdict.kind == VerdictKind::no_change);
  CHECK(verdict.effect.value() == doctest::Approx(0.95).epsilon(0.02));  // 30.305 / 30.02 − 1, in percent
}

TEST_CASE("BLEU is compared in points, and more is better") {
  ReportData data = invented({.models = {"seq2seq"}});
  set_final(data, "seq2seq", "single", "test_bleu", [](int seed) { return 30.0 + 0.01 * seed; });
  set_final(data, "seq2seq", "ddp", "test_bleu", [](int seed) { return 32.0 + 0.01 * (seed % 2); });
  const TestedVerdict verdict = verdict_on(data, "test-bleu");
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(verdict.delta == 0.5);
  CHECK(verdict.effect.value() == doctest::Approx(2.0 - 0.02 + 0.004));
}

TEST_CASE("a PSNR is compared in decibels, and its margin is the loss ratio for squared errors") {
  ReportData data = invented({.models = {"conv-autoencoder"}});
  set_final(data, "conv-autoencoder", "single", "test_psnr", [](int seed) { return 20 + 0.001 * seed; });
  set_final(data, "conv-autoencoder", "ddp", "test_psnr", [](int seed) { return 19.5 + 0.002 * seed; });
  const TestedVerdict verdict = verdict_on(data, "test-psnr");
  CHECK(verdict.scale == Scale::decibels);
  CHECK(verdict.delta == doctest::Approx(0.08600171761917561));  // 10·log10(1.02)
  CHECK(verdict.kind == VerdictKind::deteriorates);
  CHECK(verdict.effect.value() == doctest::Approx(-0.498));
  CHECK(effect_text(verdict) == "−0.498 dB");
  CHECK(margin_text(verdict) == "±0.086 dB");
}

TEST_CASE("other tasks have no perplexity, BLEU or PSNR") {
  const ReportData data = invented({.models = {"mlp"}});
  const std::vector<CellVerdicts> cells = judge(data, data.plan.compare.front());
  for (const char* metric : {"test-perplexity", "test-bleu", "test-psnr", "train-psnr"})
    CHECK(cells.front().find("ddp", metric) == nullptr);
}

const std::vector<std::string> six_models{"mlp", "cnn", "vgg11", "nbow", "seq2seq", "conv-autoencoder"};

TEST_CASE("a page of six models has each under its title, with the metrics of its task") {
  const ReportData data = invented({.models = six_models, .strategies = {"single", "ddp", "mp-ddp"}});
  const Content content = compose(data);
  const std::string page = page_html(content);
  CHECK(contains(page, "<h2>MLP<small>"));
  CHECK(contains(page, "<h2>CNN<small>"));
  CHECK(contains(page, "mp-ddp: 2 replicas × 2 stages, 1f1b, 4 micro-batches"));
  CHECK(contains(page, "Task-specific metrics"));
  std::map<std::string, std::vector<std::string>> panels;
  for (const CellFigures& figures : content.figures) {
    for (const Figure& figure : figures.panels) panels[figures.cell->model].push_back(figure.title);
  }
  // Seven by epoch or time. Speed-up and efficiency over 1, 2 and 4 devices.
  CHECK(std::ranges::count_if(panels["mlp"], [](const std::string& title) {
          return title.find("difference") == std::string::npos;
        }) == 9);
  CHECK(std::ranges::count(panels["seq2seq"], "Validation perplexity") == 1);
  CHECK(std::ranges::count(panels["conv-autoencoder"], "Validation PSNR") == 1);
  for (const Figure* drawn : all_figures(content)) {
    const Figure& figure = *drawn;
    const std::string svg = svg_document(figure);
    CHECK_FALSE(contains(svg, "nan"));
  }
  CHECK(content.figures.back().lacking ==
        "Not defined for this task: training accuracy, validation accuracy.");
  CHECK(page.size() < 1600 * 1024);
}

TEST_CASE("without translations and reconstructions the page has no task metrics") {
  const ReportData data = invented();
  const std::string page = page_html(compose(data));
  for (const char* word : {"erplexity", "PSNR", "BLEU", "Task metric", "Task-specific metrics"})
    CHECK_FALSE(contains(page, word));
}

TEST_CASE("the legend of the time breakdown names each part once, including the pipeline bubble") {
  const ReportData data = invented({.models = six_models, .strategies = {"single", "ddp", "mp-ddp"}});
  const Figure breakdown = compose(data).breakdown;
  std::vector<std::string> names;
  for (const Part& part : std::get<Stacks>(breakdown.picture).parts) names.push_back(part.name);
  CHECK(std::ranges::count(names, "Pipeline bubble") == 1);
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
  CHECK(std::get<Stacks>(compose(invented()).breakdown.picture).parts.size() ==
        names.size() - 1);  // without stages there is no bubble
}

TEST_CASE("every finished run of the plan is checked against the expectations, and misses are named") {
  ReportData data = invented({.models = {"mlp", "cnn"}, .seeds = 3});
  data.plan.expect = {{"mlp", "test", "accuracy", 0.5, std::nullopt},
                      {"cnn", "validation", "loss", std::nullopt, 1.0},
                      {"cnn", "test", "accuracy", 0.9, std::nullopt}};
  for (const char* arm : {"single", "ddp"}) {
    set_final(data, "mlp", arm, "test_accuracy", [](int) { return 0.8; });
    set_final(data, "cnn", arm, "validation_loss", [](int) { return 0.7; });
    set_final(data, "cnn", arm, "test_accuracy", [](int seed) { return seed == 1 ? 0.5 : 0.95; });
  }
  final_of(data, "cnn", "ddp", 2)["validation_loss"] = std::nan("");
  set_status(data, "cnn", "single", 1, "failed");
  const std::vector<CheckedExpectation> checked = check_expectations(data);
  REQUIRE(checked.size() == 3);
  CHECK(checked[0].holds());
  CHECK(checked[0].values.size() == 6);
  CHECK(checked[1].values.size() == 5);
  REQUIRE(checked[1].missed.size() == 1);  // NaN misses an expectation
  CHECK(contains(checked[1].missed[0], "cnn ddp seed 2 ("));
  REQUIRE(checked[2].missed.size() == 1);
  CHECK(contains(checked[2].missed[0], "cnn ddp seed 1 ("));
  CHECK(contains(checked[2].missed[0], "has test_accuracy 0.5000"));
  const std::string page = page_html(compose(data));
  CHECK(contains(page, "✗ missed by 1 of 5"));
  CHECK(contains(page, "✓ all as expected"));
  const std::string markdown = markdown_report(compose(data), {});
  CHECK(contains(markdown, "✗ missed by 1 of 5\n  - "));
  CHECK(contains(markdown, ": ✓ all as expected\n"));
}

TEST_CASE("BLEU is expected from 0 to 100, and runs outside the latest plan are not checked") {
  ReportData data = invented({.models = {"seq2seq"}, .strategies = {"single"}, .seeds = 2});
  data.plan.expect = {{"seq2seq", "test", "bleu", 25, std::nullopt}};
  set_final(data, "seq2seq", "single", "test_bleu", [](int seed) { return seed == 0 ? 30.0 : 10.0; });
  CHECK_FALSE(check_expectations(data).front().holds());
  data.plan.keys.pop_back();  // seed 1
  CHECK(check_expectations(data).front().values == std::vector<double>{30});
  CHECK(check_expectations(data).front().holds());
}

}  // namespace
}  // namespace trainyard::reports
