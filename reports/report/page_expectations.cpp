// What the experiment's file expects of its models, and whether the finished runs are so.
#include <algorithm>
#include <cmath>

#include "reports/format/number_text.h"
#include "reports/report/page.h"

namespace trainyard::reports {

namespace {

// "0.912 – 0.934"; values that are no numbers are left out.
std::string range_of(const std::vector<double>& values) {
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite), [](double value) { return std::isfinite(value); });
  if (finite.empty()) return "–";
  const auto [low, high] = std::ranges::minmax(finite);
  return low == high ? for_table(low) : for_table(low) + " – " + for_table(high);
}

std::string title_of_runs(const std::string& model, const ReportData& data) {
  const auto run = std::ranges::find(data.runs, model, &db::RunSummary::model);
  return run == data.runs.end() ? title_of(model) : title_of(*run);
}

void add_row(Markup& out, const CheckedExpectation& checked, const ReportData& data) {
  const std::string text = experiments::to_text(checked.expectation);
  out.open("tr").leaf("td", {}, title_of_runs(checked.expectation.model, data));
  out.leaf("td", {}, text.substr(text.find(": ") + 2));
  out.leaf("td", {{"class", "n"}}, std::to_string(checked.values.size()));
  out.leaf("td", {{"class", "n"}}, range_of(checked.values)).open("td");
  out.leaf(checked.holds() ? "span" : "b", {}, outcome_of(checked));
  for (const std::string& line : checked.missed) out.leaf("div", {}, line);
  out.close().close().line();
}

}  // namespace

Markup page_expectations(const Content& content) {
  Markup out;
  if (content.expectations.empty()) return out;
  out.open("section", {{"id", "expectations"}}).leaf("h2", {}, "What the file expects");
  out.open("div", {{"class", "scroll"}}).open("table", {{"class", "numbers"}}).open("thead").open("tr");
  out.leaf("th", {{"scope", "col"}}, "Model").leaf("th", {{"scope", "col"}}, "Expected of each run");
  out.leaf("th", {{"scope", "col"}, {"class", "n"}}, "Runs");
  out.leaf("th", {{"scope", "col"}, {"class", "n"}}, "Found");
  out.leaf("th", {{"scope", "col"}}, "").close().close().open("tbody").line();
  for (const CheckedExpectation& checked : content.expectations) add_row(out, checked, *content.data);
  out.close().close().close().close();
  return out;
}

}  // namespace trainyard::reports
