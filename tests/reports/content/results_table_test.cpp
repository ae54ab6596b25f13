// The results table: numbers, bold print, and equality with pandas.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <doctest/doctest.h>

#include "reports/content/content.h"
#include "reports/content/paper_tables.h"
#include "reports/format/table.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"
#include "tests/support/needed_programs.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::reports {
namespace {

std::string text_at(const TableValue& value) {
  return (std::holds_alternative<Strong>(value) ? "*" : "") + shown(value);
}

// The rows of a model as text, bold print with an asterisk: "Accuracy in %|single|5|97.1 ± 0.2|…".
std::vector<std::string> rows_of(const ReportData& data, const std::string& label) {
  const Content content = compose(data);
  std::vector<std::string> rows;
  bool inside = false;
  for (const TableRow& row : content.results.table.table.rows) {
    if (row.size() == 1) {
      inside = shown(row.front()) == label;
      continue;
    }
    std::string text;
    for (const TableValue& value : row) text += (&value == &row.front() ? "" : "|") + text_at(value);
    if (inside) rows.push_back(text);
  }
  return rows;
}

// Sets accuracies of the MLP after training, by seed. The other metrics are not changed.
void set_accuracy(ReportData& data, const std::string& strategy, const std::vector<double>& values) {
  set_final(data, "mlp", strategy, "test_accuracy",
            [&](int seed) { return values[static_cast<std::size_t>(seed)]; });
}

std::string last_field(const std::string& row) {
  return row.substr(row.rfind('|') + 1);
}

TEST_CASE("a result is the mean with half of its t interval, with two digits of the interval") {
  ReportData data = invented({.models = {"mlp"}, .seeds = 3});
  set_accuracy(data, "single", {0.97, 0.98, 0.99});  // t(0.975, 2) = 4.302653, s = 0.01
  set_accuracy(data, "ddp", {0.5, 0.5, 0.5});
  const std::vector<std::string> rows = rows_of(data, "MLP");
  REQUIRE(rows.size() == 6);  // accuracy, loss and time of two arms
  CHECK(rows[0].starts_with("Accuracy in %|single|3|"));
  CHECK(last_field(rows[0]) == "*98.0 ± 2.5");  // 100 · 4.302653 · 0.01 / √3 = 2.4841
  CHECK(rows[1].starts_with("|ddp|3|"));
  CHECK(last_field(rows[1]) == "50.00 ± 0");
  CHECK(rows[4].starts_with("Time in s|single|3|"));
  CHECK(last_field(rows[4]).empty());  // a test has no time
}

TEST_CASE("bold is the highest accuracy, and the lowest loss and time") {
  ReportData data = invented({.models = {"mlp"}});
  set_accuracy(data, "single", {0.95, 0.96, 0.97, 0.96, 0.96});
  set_accuracy(data, "ddp", {0.96, 0.97, 0.98, 0.97, 0.97});
  set_final(data, "mlp", "ddp", "test_loss", [](int seed) { return 0.9 + 0.01 * seed; });
  const std::vector<std::string> rows = rows_of(data, "MLP");
  CHECK(last_field(rows[0]) == "96.00 ± 0.88");
  CHECK(last_field(rows[1]) == "*97.00 ± 0.88");
  CHECK(last_field(rows[2]).starts_with("*"));  // loss of single
  CHECK_FALSE(last_field(rows[3]).starts_with("*"));
  CHECK(contains(rows[5], "|ddp|5|*"));  // training time
}

TEST_CASE("means that look equal are both bold, and none is bold if all are equal") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "ddp", "mp-ddp"}, .seeds = 3});
  set_accuracy(data, "single", {0.97, 0.98, 0.99});
  set_accuracy(data, "ddp", {0.97, 0.98, 0.9901});
  set_accuracy(data, "mp-ddp", {0.96, 0.97, 0.98});
  std::vector<std::string> rows = rows_of(data, "MLP");
  CHECK(last_field(rows[0]) == "*98.0 ± 2.5");
  CHECK(last_field(rows[1]) == "*98.0 ± 2.5");
  CHECK(last_field(rows[2]) == "97.0 ± 2.5");
  set_accuracy(data, "mp-ddp", {0.97, 0.98, 0.99});
  rows = rows_of(data, "MLP");
  for (int arm = 0; arm < 3; ++arm) CHECK(last_field(rows[static_cast<std::size_t>(arm)]) == "98.0 ± 2.5");
}

TEST_CASE("an arm without the same seeds, or that is not comparable, is never bold") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "ddp", "mp-ddp"}});
  set_accuracy(data, "ddp", {0.99, 0.99, 0.99, 0.99, 0.98});
  set_status(data, "mlp", "ddp", 4, "failed");
  for (db::RunSummary& run : data.runs)
    run.axes["global_batch"] = std::int64_t{run.strategy == "mp-ddp" ? 256 : 128};
  set_accuracy(data, "mp-ddp", {0.999, 0.999, 0.999, 0.999, 0.998});
  const std::vector<std::string> rows = rows_of(data, "MLP");
  CHECK(rows[1].starts_with("|ddp|4|"));
  CHECK(rows[2].starts_with("|mp-ddp, NOT COMPARABLE|5|"));
  for (const std::string& row : rows) CHECK_FALSE(contains(row, "*"));  // only the baseline is left
}

TEST_CASE("times that do not count are left out, and n of each phase is listed if they differ") {
  ReportData data = invented({.models = {"mlp"}});
  for (int seed = 0; seed < 5; ++seed) final_of(data, "mlp", "ddp", seed).times_count = false;
  final_of(data, "mlp", "single", 0)["test_accuracy"] = std::nan("");
  const std::vector<std::string> rows = rows_of(data, "MLP");
  CHECK(rows[0].starts_with("Accuracy in %|single|5, 5, 4|"));
  CHECK(rows[5] == "|ddp|0|–|–|");
}

TEST_CASE("a table of results says what bold and intervals mean, and that bold is not significance") {
  const ReportData data = invented();
  const Content content = compose(data);
  const std::string& caption = content.results.table.table.caption;
  CHECK(contains(caption, "half of the 95 % confidence interval of the mean"));
  CHECK(contains(caption, "It does not mean significant"));
  CHECK(contains(caption, "Only arms with the same seeds are candidates"));
}

TEST_CASE("a second comparison of the same runs adds no rows") {
  ReportData data = invented({.strategies = {"single", "ddp", "mp-ddp"}});
  const std::size_t once = compose(data).results.numbers.rows.size();
  data.plan.compare.push_back(data.plan.compare.front());
  data.plan.compare.back().baseline = "ddp";
  CHECK(compose(data).results.numbers.rows.size() == once);
}

// The columns of `trainyard export final` and `trainyard export runs` that the comparison with pandas needs.
std::string final_csv(const ReportData& data) {
  Table table;
  table.exact = true;
  table.columns = {"run_key", "model", "strategy", "times_count"};
  std::vector<std::string> columns;
  const Content content = compose(data);
  for (const TableRow& row : content.results.numbers.rows)
    if (std::ranges::find(columns, shown(row[5])) == columns.end()) columns.push_back(shown(row[5]));
  table.columns.insert(table.columns.end(), columns.begin(), columns.end());
  std::vector<const db::FinalMetrics*> finals;
  for (const db::FinalMetrics& final : data.finals) finals.push_back(&final);
  std::ranges::sort(finals, {}, [](const db::FinalMetrics* final) { return final->run_key; });
  for (const db::FinalMetrics* final : finals) {
    TableRow row{final->run_key, final->model, final->strategy, std::int64_t{final->times_count}};
    for (const std::string& column : columns) row.emplace_back((*final)[db::MetricColumn::named(column)]);
    table.rows.push_back(std::move(row));
  }
  return csv_table(table);
}

TEST_CASE("count, mean and standard deviation equal those of pandas, bit for bit") {
  const std::string python = tests::python_with_pandas(".");
  if (python.empty()) return;
  ReportData data = invented({.models = {"mlp", "seq2seq", "conv-autoencoder"},
                              .strategies = {"single", "ddp", "mp-ddp"},
                              .seeds = 10,  // more would have equal keys
                              .energy = true});
  // Values of different sizes, whose plain sum would lose digits.
  set_final(data, "mlp", "ddp", "test_loss",
            [](int seed) { return std::pow(10, seed % 9 - 4) * (1 + 0.37 * seed) / 3; });
  set_final(data, "mlp", "single", "epoch_train_seconds",
            [](int seed) { return (seed % 2 == 0 ? 1e9 : 1e-3) / 7 + seed; });
  set_status(data, "seq2seq", "ddp", 3, "failed");
  final_of(data, "mlp", "mp-ddp", 7).times_count = false;
  final_of(data, "mlp", "mp-ddp", 8)["test_accuracy"] = std::nan("");
  for (int seed = 1; seed < 10; ++seed)
    set_status(data, "conv-autoencoder", "mp-ddp", seed, "failed");  // n = 1
  const tests::ScratchFolder folder;
  tests::write_text(folder / "results.csv", csv_table(compose(data).results.numbers));
  tests::write_text(folder / "final.csv", final_csv(data));
  const std::string files =
      " '" + (folder / "results.csv").string() + "' '" + (folder / "final.csv").string() + "'";
  const std::string command = python + " tests/support/pandas_results.py" + files;
  CHECK(std::system(command.c_str()) == 0);
  // The check can fail: one digit in the last place.
  std::string wrong = tests::read_text(folder / "results.csv");
  const std::size_t point = wrong.find('.', wrong.find("mlp,single,test-loss"));
  wrong[point + 3] = wrong[point + 3] == '9' ? '8' : static_cast<char>(wrong[point + 3] + 1);
  tests::write_text(folder / "results.csv", wrong);
  CHECK(std::system((command + " 2> /dev/null").c_str()) != 0);
}

}  // namespace
}  // namespace trainyard::reports
