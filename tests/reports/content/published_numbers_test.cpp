// Published numbers beside ours. Expected values are closed forms.
#include <cmath>

#include <doctest/doctest.h>

#include "reports/analysis/analysis.h"
#include "reports/content/paper_tables.h"
#include "reports/document/report_json.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

// Three pairs of an MLP. ddp takes exp(0.1), exp(0.2) and exp(0.3) times the whole training time of single.
ReportData three_pairs() {
  ReportData data = invented({.models = {"mlp"}, .seeds = 3});
  set_final(data, "mlp", "single", "total_train_seconds", [](int) { return 10; });
  set_final(data, "mlp", "ddp", "total_train_seconds",
            [](int seed) { return 10 * std::exp(0.1 * (seed + 1)); });
  for (db::RunSummary& run : data.runs) run.axes["epochs"] = run.epochs;
  experiments::PublishedSource source{"paper", {}, {}, {}};
  source.dataset = "mnist";
  experiments::PublishedTable table;
  table.title = "distributed";
  table.axis = "strategy";
  table.values = {"single", "ddp"};
  table.at = {{"epochs", "6"}};
  table.numbers["total_train_seconds"] = {100, 36.17};
  source.tables = {table};
  data.plan.published.emplace();
  data.plan.published->sources = {source};
  return data;
}

PublishedNumber only_number(const ReportData& data) {
  const std::vector<PublishedNumber> numbers = make_report(data).published_numbers;
  REQUIRE(numbers.size() == 1);
  return numbers.front();
}

std::string remarks(const PublishedNumber& number) {
  std::string all;
  for (const std::string& remark : number.remarks) all += remark + "; ";
  return all;
}

}  // namespace

TEST_CASE("a percentage is the geometric mean over pairs, with its t interval and our word") {
  const PublishedNumber number = only_number(three_pairs());
  constexpr double t = 4.302652729749464;  // scipy.stats.t.ppf(0.975, 2)
  const double half = t * 0.1 / std::sqrt(3.0);
  CHECK(number.here.mean == doctest::Approx(100 * std::exp(0.2)));
  CHECK(number.here.low == doctest::Approx(100 * std::exp(0.2 - half)));
  CHECK(number.here.high == doctest::Approx(100 * std::exp(0.2 + half)));
  CHECK(number.here.n == 3);
  CHECK(number.published == 36.17);
  CHECK(number.metric == "Total training time");
  CHECK(number.verdict == "IMPROVES");  // of the time per epoch, in which ddp takes 0.55 of single
  CHECK(contains(remarks(number), "other data than the study: synthetic-digits, not mnist"));
}

TEST_CASE("arms with different epochs are judged by their total time, others are not") {
  ReportData data = three_pairs();
  data.plan.compare.front().differs = {"epochs"};
  const auto judged_on = [&] { return make_report(data).comparisons.front().cells.front(); };
  CHECK(judged_on().find("ddp", "train-total-seconds") == nullptr);
  for (db::RunSummary& run : data.runs)
    if (run.strategy == "ddp") run.axes["epochs"] = run.epochs = 12;
  const Cell cell = judged_on();
  const Verdict* const verdict = cell.find("ddp", "train-total-seconds");
  REQUIRE(verdict != nullptr);
  constexpr double t = 4.302652729749464;  // scipy.stats.t.ppf(0.975, 2)
  const double half = t * 0.1 / std::sqrt(3.0);
  CHECK(verdict->effect.value() == doctest::Approx(100 * std::expm1(0.2)));
  CHECK(verdict->ci95.value().low == doctest::Approx(100 * std::expm1(0.2 - half)));
  CHECK(verdict->ci95.value().high == doctest::Approx(100 * std::expm1(0.2 + half)));
  CHECK(only_number(data).verdict == text_of(verdict->kind));
  CHECK(contains(csv_table(compose(data).results.numbers), "train-total-seconds,total_train_seconds,s,3,"));
}

TEST_CASE("a run whose times do not count has no total time, and is counted as left out") {
  ReportData data = three_pairs();
  final_of(data, "mlp", "ddp", 2).times_count = false;
  const PublishedNumber number = only_number(data);
  CHECK(number.here.mean == doctest::Approx(100 * std::exp(0.15)));
  CHECK(number.here.n == 2);
  CHECK(contains(remarks(number), "1 of 3 pairs left out: not finished, or the times do not count"));
}

TEST_CASE("repeats have a mean and a spread on both sides, and epochs a row each") {
  ReportData data = three_pairs();
  experiments::PublishedTable& table = data.plan.published->sources.front().tables.front();
  table = {};
  table.title = "sequential";
  table.at = {{"strategy", "single"}};
  table.repeats = true;
  table.numbers["test_accuracy"] = {0.8, 0.9, 1.0};
  set_final(data, "mlp", "single", db::MetricColumn::named("test_accuracy"),
            [](int seed) { return 0.7 + 0.1 * seed; });
  const PublishedNumber number = only_number(data);
  CHECK(number.published == doctest::Approx(90));
  CHECK(number.published_sd == doctest::Approx(10));
  CHECK(number.repeats == 3);
  CHECK(number.here.mean == doctest::Approx(80));
  CHECK(number.sd == doctest::Approx(10));
  CHECK(number.here.n == 3);
  data.plan.published->sources.front().tables.front().repeats = false;
  data.plan.published->sources.front().tables.front().numbers = {{"train_accuracy", {0.5, 0.6}}};
  const std::vector<PublishedNumber> numbers = make_report(data).published_numbers;
  REQUIRE(numbers.size() == 2);
  CHECK(numbers[1].what == "sequential: epoch 2");
  double sum = 0;
  for (const db::EpochRow& row : data.averages)
    if (row.strategy == "single" && row.epoch == 2) sum += 100 * row["train_accuracy"];
  CHECK(numbers[1].here.mean == doctest::Approx(sum / 3));
}

TEST_CASE("an arm that is not comparable has no percentage, and the row has the reason") {
  ReportData data = three_pairs();
  for (db::RunSummary& run : data.runs)
    run.axes["global_batch"] = std::int64_t{run.strategy == "ddp" ? 256 : 128};
  const PublishedNumber number = only_number(data);
  CHECK(std::isnan(number.here.mean));
  CHECK(contains(remarks(number), "not comparable: "));
  CHECK(number.verdict == "NOT COMPARABLE");
}

TEST_CASE("published numbers are in every output, with what weakens them") {
  const Content content = compose(three_pairs());
  const std::string file = report_json(*content.report);
  CHECK(report_json(report_from_json(file, "report.json")) == file);
  CHECK(contains(file,
                 "\"metric\":\"Total training time\",\"unit\":\"% of the benchmark\",\"published\":36.17"));
  const PaperTable paper = published_numbers(*content.report);
  for (const std::string& text :
       {page_html(content, {}), terminal_table(content), markdown_report(content, {"markdown"}, {}),
        latex_files(paper).front().second, csv_table(published_numbers_in_full(*content.report))}) {
    CHECK_MESSAGE(contains(text, "36.17"), text);
    CHECK_MESSAGE(contains(text, "122.1"), text);
    CHECK_MESSAGE(contains(text, "other data than the study: synthetic-digits, not mnist"), text);
  }
  REQUIRE(content.answer.published.size() == 1);
  CHECK(contains(content.answer.published.front(),
                 " 1 of its numbers is beside ours in the table of published numbers"));
  CHECK(contains(content.answer.published.front(),
                 "Other data than the study: mnist, stand-in synthetic-digits, not mnist."));
}

}  // namespace trainyard::reports
