// README's numbers of the demo, compared with report.json of the run that tools/update-readme made them from.
#include <cmath>
#include <numeric>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/scratch_folder.h"

using trainyard::tests::read_text;

namespace {

const std::string demo_begins = "<!-- demo -->\n", demo_ends = "<!-- end of demo -->\n";

// The cells of the rows of a table, without its two lines of headings: "| MLP | ddp |" → {"MLP", "ddp"}.
std::vector<std::vector<std::string>> table_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  const std::regex row("(?:^|\n)\\|([^\n]*)"), cell(" ([^|]*) \\|");
  for (auto line = std::sregex_iterator(text.begin(), text.end(), row); line != std::sregex_iterator();
       ++line) {
    const std::string cells = (*line)[1];
    auto& found = rows.emplace_back();
    for (auto each = std::sregex_iterator(cells.begin(), cells.end(), cell); each != std::sregex_iterator();
         ++each)
      found.push_back((*each)[1]);
  }
  REQUIRE(rows.size() > 2);
  rows.erase(rows.begin(), rows.begin() + 2);
  return rows;
}

// Checks that `text` has exactly the numbers `values`, each rounded to the digits that are written. No value: "–".
void check_numbers(const std::string& text, const std::vector<std::optional<double>>& values) {
  CAPTURE(text);
  if (!values.front()) {
    CHECK(text == "–");
    return;
  }
  const std::string plain = std::regex_replace(text, std::regex("−"), "-");
  const std::regex number("(< )?[-+]?[0-9]+(?:\\.([0-9]+))?");
  auto at = std::sregex_iterator(plain.begin(), plain.end(), number);
  for (const std::optional<double>& value : values) {
    REQUIRE(at != std::sregex_iterator());
    const bool below = (*at)[1].matched;
    const double written = std::stod(at->str().substr(below ? 2 : 0));
    const double half_digit = 0.5 * std::pow(10.0, -static_cast<double>((*at)[2].length()));
    if (below)
      CHECK(value.value() < written);
    else
      CHECK(std::abs(value.value() - written) <= half_digit * (1 + 1e-9));
    ++at;
  }
  CHECK(at == std::sregex_iterator());
}

std::optional<double> number_or_none(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

// The verdict of an arm on a metric: "CNN", "ddp", "test accuracy".
nlohmann::json verdict_on(const nlohmann::json& report, const std::string& label, const std::string& arm,
                          const std::string& metric) {
  for (const nlohmann::json& cell : report.at("comparisons").at(0).at("cells"))
    for (const nlohmann::json& verdict : cell.at("verdicts"))
      if (cell.at("label") == label && verdict.at("arm") == arm &&
          verdict.at("metric") == std::regex_replace(metric, std::regex(" "), "-"))
        return verdict;
  FAIL((std::string("report.json has no verdict on ") + label + ' ' + arm + ' ' + metric));
  return {};
}

}  // namespace

TEST_CASE("the numbers of the demo in README are those of docs/demo-report.json") {
  const std::string readme = read_text("README.md");
  const nlohmann::json report = nlohmann::json::parse(read_text("docs/demo-report.json"));
  const auto from = readme.find(demo_begins), to = readme.find(demo_ends);
  REQUIRE(from < to);
  REQUIRE(to < readme.size());
  const std::string text = readme.substr(from + demo_begins.size(), to - from - demo_begins.size());
  const auto rows = table_rows(text);
  CHECK(rows.size() >=
        2 * report.at("comparisons").at(0).at("cells").size());  // accuracy and times of each model
  for (const std::vector<std::string>& row : rows) {
    REQUIRE(row.size() == 8);
    CAPTURE(row[0] + ' ' + row[1] + ' ' + row[2]);
    const nlohmann::json verdict = verdict_on(report, row[0], row[1], row[2]);
    std::string word = verdict.at("verdict");
    for (const nlohmann::json& caveat : verdict.at("caveats"))
      word += ", " + caveat.at("mark").get<std::string>();
    CHECK(row[3] == word);
    if (verdict.at("scale") == "percent")
      CHECK(row[4].ends_with(verdict.at("effect").is_null() ? "–" : " %"));
    check_numbers(row[4], {number_or_none(verdict.at("effect"))});
    const nlohmann::json interval =
        verdict.at("ci95").is_null() ? nlohmann::json{nullptr, nullptr} : verdict.at("ci95");
    check_numbers(row[5], {number_or_none(interval.at(0)), number_or_none(interval.at(1))});
    check_numbers(row[6], {number_or_none(verdict.at("p"))});
    check_numbers(row[7], {number_or_none(verdict.at("n"))});
  }
  const nlohmann::json& runs = report.at("runs");
  const double seconds = std::accumulate(
      runs.begin(), runs.end(), 0.0,
      [](double sum, const nlohmann::json& run) { return sum + run.at("total_seconds").get<double>(); });
  std::smatch found;
  REQUIRE(std::regex_search(text, found, std::regex("Its (.* runs took .* seconds)")));
  const auto trained =
      std::ranges::count_if(runs, [](const nlohmann::json& run) { return run.at("has_result").get<bool>(); });
  check_numbers(found[1], {static_cast<double>(trained), seconds});
}
