// The gate of `compare --fail-on`: every cell of the table in docs/comparing.md, and its words.
#include "tools/trainyard/commands/compare_gate.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::tools;
using reports::VerdictKind;

namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" `");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" `") - begin + 1);
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(trimmed(cell));
  return cells;
}

// The rows of the table whose first column is "verdict", with the head first.
std::vector<std::vector<std::string>> documented_table() {
  std::ifstream in(std::string(TRAINYARD_SOURCE_DIR) + "/docs/comparing.md");
  REQUIRE(in);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    const bool head = line.starts_with("| verdict |");
    if (!head && (rows.empty() || !line.starts_with("|"))) {
      if (!rows.empty()) break;
      continue;
    }
    if (!line.starts_with("|---")) rows.push_back(cells_of(line));
  }
  return rows;
}

reports::Verdict judged(VerdictKind kind, bool tested = true, bool verified = true, bool left_out = false,
                        bool replaced = false) {
  reports::Verdict verdict;
  verdict.kind = kind;
  if (tested) verdict.p = 0.04;
  verdict.verified = verified;
  if (left_out) verdict.dropped = {"seed 3: its run failed"};
  if (replaced) verdict.caveats = {{reports::replaced_mark, "a result was replaced"}};
  return verdict;
}

// The verdicts on the page.
std::map<std::string, reports::Verdict> verdicts() {
  return {{"IMPROVES", judged(VerdictKind::improves)},
          {"NO CHANGE", judged(VerdictKind::no_change)},
          {"DETERIORATES", judged(VerdictKind::deteriorates)},
          {"INCONCLUSIVE, tested", judged(VerdictKind::inconclusive, true)},
          {"INCONCLUSIVE, fewer than 3 seeds or not tested", judged(VerdictKind::inconclusive, false)},
          {"INTERIM", judged(VerdictKind::interim, false)},
          {"NO DATA", judged(VerdictKind::no_data, false)},
          {"NOT COMPARABLE", judged(VerdictKind::not_comparable, false)},
          {"BROKEN", judged(VerdictKind::broken, false)},
          {"IMPROVES, NOT VERIFIED", judged(VerdictKind::improves, true, false)},
          {"DETERIORATES, NOT VERIFIED", judged(VerdictKind::deteriorates, true, false)},
          {"IMPROVES, a planned pair left out", judged(VerdictKind::improves, true, true, true)},
          {"IMPROVES, REPLACED", judged(VerdictKind::improves, true, true, false, true)}};
}

std::string code_for(const reports::Verdict& verdict, const std::string& option) {
  if (option == "no option") return "0";
  if (option == "run") return verdict.kind == VerdictKind::broken ? "1" : "0";  // `run` and `resume`
  return parse_fail_on({option}).front()->fails(verdict) ? "3" : "0";
}

reports::Verdict verdict_of(const std::string& arm, const std::string& metric, VerdictKind kind,
                            bool tested) {
  reports::Verdict verdict;
  verdict.arm = arm;
  verdict.metric = metric;
  verdict.kind = kind;
  if (tested) verdict.p = 0.04;
  return verdict;
}

// One comparison with one cell, "MLP".
std::vector<reports::Comparison> comparison_of(const std::vector<std::string>& arms,
                                               const std::vector<reports::Verdict>& verdicts) {
  reports::Cell cell;
  cell.label = "MLP";
  for (const std::string& arm : arms) cell.arms.emplace_back().value = arm;
  cell.verdicts = verdicts;
  reports::Comparison comparison;
  comparison.cells = {cell};
  return {comparison};
}

}  // namespace

TEST_CASE("the gate does what every cell of the documented table of exit codes says") {
  const auto rows = documented_table();
  const auto known = verdicts();
  REQUIRE(rows.size() == known.size() + 1);
  const std::vector<std::string>& head = rows.front();
  REQUIRE(head.size() == fail_on_words().size() + 3);
  for (const FailOnWord& word : fail_on_words())
    CHECK_MESSAGE(std::ranges::find(head, word.name) != head.end(), word.name);
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) {
    CAPTURE(row->front());
    const auto verdict = known.find(row->front());
    REQUIRE(verdict != known.end());
    REQUIRE(row->size() == head.size());
    for (std::size_t i = 1; i < head.size(); ++i) {
      CAPTURE(head[i]);
      CHECK(code_for(verdict->second, head[i]) == (*row)[i]);
    }
  }
}

TEST_CASE("an unknown word of --fail-on is an error that names the nearest one") {
  const auto words = parse_fail_on({"broken", "missing"});
  REQUIRE(words.size() == 2);
  CHECK(words[0]->name == "broken");
  CHECK(words[1]->name == "missing");
  CHECK_THROWS_WITH_AS(parse_fail_on({"broken", "detriorates"}),
                       doctest::Contains("did you mean \"deteriorates\"?"), UserError);
  CHECK_THROWS_AS(parse_fail_on({""}), UserError);
}

TEST_CASE("an arm without a verdict fails the gates that require an answer") {
  const auto comparisons =
      comparison_of({"ddp", "mp"}, {verdict_of("ddp", "train-loss", VerdictKind::improves, true)});
  for (const char* word : {"deteriorates", "undecided", "missing"}) {
    const auto failures = gate_failures(comparisons, parse_fail_on({word}));
    REQUIRE(failures.size() == 1);
    CHECK(contains(failures.front(), "MLP mp: NO DATA"));
  }
  for (const char* word : {"broken", "not-comparable", "not-verified"})
    CHECK(gate_failures(comparisons, parse_fail_on({word})).empty());
}

TEST_CASE("the gate names each arm once per verdict, with the metrics that fail") {
  const auto comparisons =
      comparison_of({"ddp"}, {verdict_of("ddp", "train-loss", VerdictKind::broken, false),
                              verdict_of("ddp", "train-seconds", VerdictKind::broken, false)});
  CHECK(gate_failures(comparisons, parse_fail_on({"deteriorates"})) ==
        std::vector<std::string>{"MLP ddp: BROKEN (train loss, train seconds)"});
  CHECK(gate_failures(comparisons, {}).empty());
}

TEST_CASE(
    "a gate on some metrics does not fail because of the others, but because of runs without a result") {
  const auto comparisons =
      comparison_of({"ddp", "mp", "pipeline"},
                    {verdict_of("ddp", "test-accuracy", VerdictKind::improves, true),
                     verdict_of("ddp", "test-loss", VerdictKind::deteriorates, true),
                     verdict_of("mp", "test-loss", VerdictKind::deteriorates, true),  // it has no accuracy
                     verdict_of("pipeline", "test-loss", VerdictKind::no_data, false)});
  const auto gate = parse_fail_on({"deteriorates"});
  CHECK(gate_failures(comparisons, gate, {"test-accuracy"}) ==
        std::vector<std::string>{"MLP pipeline: NO DATA (no run has recorded a metric)"});
  CHECK(gate_failures(comparisons, gate, {"test-loss"}) ==
        std::vector<std::string>{"MLP ddp: DETERIORATES (test loss)", "MLP mp: DETERIORATES (test loss)",
                                 "MLP pipeline: NO DATA (test loss)"});
  CHECK(gate_failures(comparisons, gate) == gate_failures(comparisons, gate, {"test-accuracy", "test-loss"}));
}
