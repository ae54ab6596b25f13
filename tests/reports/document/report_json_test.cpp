#include "reports/document/report_json.h"

#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "reports/analysis/analysis.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

// Two experiments with ranks, limits, published numbers, data, an expectation, a failed run and values that are
// not finite.
Report rich_report() {
  ReportData first = invented({.models = {"mlp", "seq2seq"}, .strategies = {"single", "ddp", "pipeline"}});
  set_status(first, "mlp", "ddp", 4, "failed");
  final_of(first, "mlp", "single", 1)["validation_loss"] = std::numeric_limits<double>::infinity();
  first.plan.data_profiles.push_back({"mnist", "mnist", "identity", {{{{1, 2}, {3, 4}, {5, 6}}}, {}}});
  first.plan.published.emplace();
  first.plan.published->sources.push_back(
      {.name = "a paper", .hardware = {{"ddp", "two GPUs"}}, .series = {}});
  first.plan.expect.push_back({"mlp", "validation", "loss", {}, 1.0});
  add_step(first, run_of(first, "mlp", "pipeline", 2));
  ReportData second = invented({.models = {"conv-autoencoder"}, .seeds = 3});
  second.experiment = "second";
  return make_report(merged({first, second}));
}

Report read_again(const Report& report) {
  return report_from_json(report_json(report), "report.json");
}

std::string problem_of(const OrderedJson& json) {
  try {
    report_from_json(json.dump(), "x/report.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a report that was written and read has the same page, terminal text, Markdown and JSON") {
  const Report report = rich_report();
  const Report again = read_again(report);
  CHECK(report_json(again) == report_json(report));
  CHECK(page_html(compose(again), {"svg"}) == page_html(compose(report), {"svg"}));
  CHECK(terminal_table(compose(again)) == terminal_table(compose(report)));
  CHECK(markdown_report(compose(again), {"svg"}) == markdown_report(compose(report), {"svg"}));
  CHECK(contains(report_json(report), "\"infinite\""));
}

TEST_CASE("a file of another format, without a member or with a wrong one is refused by its place") {
  const OrderedJson whole = OrderedJson::parse(report_json(make_report(invented({.models = {"mlp"}}))));
  CHECK(problem_of(whole).empty());
  CHECK(contains(problem_of(OrderedJson::array()), "x/report.json: format: expected 1"));
  OrderedJson other = whole;
  other["format"] = 2;
  CHECK(contains(problem_of(other), "format: expected 1, not 2"));
  other = whole;
  other["comparisons"][0]["cells"][0].erase("label");
  CHECK(contains(problem_of(other), "comparisons[0].cells[0].label: expected a value"));
  other = whole;
  other["runs"][3]["seed"] = "four";
  CHECK(contains(problem_of(other), "runs[3].seed: expected an integer"));
  other = whole;
  other["comparisons"][0]["cells"][0]["verdicts"][0]["n"] = 5'000'000'000;
  CHECK(contains(problem_of(other), "verdicts[0].n: expected a smaller integer"));
  other = whole;
  other["comparisons"][0]["cells"][0]["verdicts"][0]["verdict"] = "GOOD";
  CHECK(contains(problem_of(other), "verdicts[0].verdict: expected another text than \"GOOD\""));
  other = whole;
  other["comparisons"][0]["compare"] = 3;
  CHECK(contains(problem_of(other), "comparisons[0].compare: expected another value"));
  CHECK_THROWS_WITH_AS(report_from_json("{", "x"), doctest::Contains("x is not JSON"), UserError);
  CHECK_THROWS_WITH_AS(report_from_json(std::string(100'000, '['), "x"),
                       doctest::Contains("expected values nested at most 100 deep"), UserError);
}

TEST_CASE("the report from which the fuzz target starts is one of this release") {
  std::ifstream file(TRAINYARD_SOURCE_DIR "/tests/fuzz/corpus/report/demo.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Report report = report_from_json(text, "demo.json");
  CHECK(report.comparisons.front().cells.front().verdicts.size() > 3);
}

TEST_CASE("a member that a later release adds is ignored") {
  OrderedJson json = OrderedJson::parse(report_json(make_report(invented({.models = {"mlp"}}))));
  json["runs"][0]["colour"] = "blue";
  CHECK(problem_of(json).empty());
}

TEST_CASE("a report of a stranger names no file outside its folder, no unknown metric and no missing arm") {
  const OrderedJson whole = OrderedJson::parse(report_json(make_report(invented({.models = {"mlp"}}))));
  for (const char* slug : {"../../etc/passwd", "a/b", "..", ""}) {
    OrderedJson json = whole;
    json["comparisons"][0]["cells"][0]["slug"] = slug;
    CHECK_MESSAGE(contains(problem_of(json), "slug"), slug);
  }
  OrderedJson json = whole;
  json["comparisons"][0]["slug_end"] = "-/../x";
  CHECK(contains(problem_of(json), "slug_end"));
  json = whole;
  json["comparisons"][0]["cells"].push_back(json["comparisons"][0]["cells"][0]);
  CHECK(contains(problem_of(json), "that no other cell has"));
  json = whole;
  json["comparisons"][0]["cells"][0]["verdicts"][0]["metric"] = "beauty";
  CHECK(contains(problem_of(json), "another name than \"beauty\""));
  json = whole;
  json["comparisons"][0]["cells"][0]["verdicts"][0]["arm"] = "nobody";
  CHECK(contains(problem_of(json), "another arm than \"nobody\""));
  json = whole;
  OrderedJson& arm = json["comparisons"][0]["cells"][0]["arms"][0];
  arm.erase("timeline");  // earlier releases do not write it
  CHECK(problem_of(json).empty());
  arm["timeline"] = {{"run", "x"}, {"epoch", 1}, {"step", 1}};
  arm["timeline"]["events"] = {
      {{"replica", 0}, {"stage", 0}, {"part", ""}, {"micro_batch", 0}, {"begin", 2}, {"end", 1}}};
  CHECK(contains(problem_of(json), "timeline: expected events that end after they begin"));
}

TEST_CASE("texts of a stranger are escaped on the page") {
  Report report = rich_report();
  const std::string attack = "<script>alert(1)</script>";
  report.name = report.runs[0].title = report.fairness[0].text = attack;
  report.comparisons[0].cells[0].label = report.comparisons[0].cells[0].dataset = attack;
  report.comparisons[0].cells[0].verdicts[0].reason.text = attack;
  CHECK_FALSE(contains(page_html(compose(read_again(report))), "<script>alert"));
}

}  // namespace
}  // namespace trainyard::reports
