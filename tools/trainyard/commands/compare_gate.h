// Gate of `trainyard compare --fail-on WORDS`: the verdicts that make CI fail. Pure functions. A test
// compares them with the table in docs/comparing.md.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "reports/document/report.h"

namespace trainyard::tools {

enum class FailOn { deteriorates, broken, not_comparable, not_verified, undecided, missing, replaced };

struct FailOnWord {
  std::string name;  // "not-comparable"
  FailOn value;
  std::string about;  // one line for --help
};
std::span<const FailOnWord> fail_on_words();

// UserError with the nearest known word if a word is unknown.
std::vector<FailOn> parse_fail_on(const std::vector<std::string>& words);

// The parts of a verdict that the gate uses.
struct GateCase {
  reports::VerdictKind kind = reports::VerdictKind::inconclusive;
  bool tested = true;  // was tested; false for fewer than 3 pairs, for example
  bool verified = true;
  bool left_out = false;  // a planned pair was left out, for example because its run failed
  bool replaced = false;  // results were replaced after they were seen
};
GateCase gate_case(const reports::Verdict& verdict);

bool fails(const GateCase& verdict, FailOn word);

// One line per arm and failing verdict: "MLP ddp: BROKEN (train loss, train seconds)". Empty if the gate
// passes. The runs of an arm without any verdict count as missing.
// - `metrics`: names of the only metrics that can fail, for example "test-accuracy". Empty: all.
// - An arm that has no verdict on them passes if another metric shows that its runs have finished.
std::vector<std::string> gate_failures(std::span<const reports::Comparison> comparisons,
                                       std::span<const FailOn> words,
                                       const std::set<std::string>& metrics = {});

}  // namespace trainyard::tools
