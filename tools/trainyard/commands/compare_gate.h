// Gate of `trainyard compare --fail-on WORDS`: the verdicts that make CI fail. Pure functions. A test
// compares them with the table in docs/comparing.md.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "reports/document/report.h"

namespace trainyard::tools {

struct FailOnWord {
  std::string name;   // "not-comparable"
  std::string about;  // one line for --help
  bool (*fails)(const reports::Verdict& verdict);
};
using FailOnWords = std::span<const FailOnWord* const>;
std::span<const FailOnWord> fail_on_words();

// UserError with the nearest known word if a word is unknown.
std::vector<const FailOnWord*> parse_fail_on(const std::vector<std::string>& words);

// One line per arm and failing verdict: "MLP ddp: BROKEN (train loss, train seconds)". Empty if the gate
// passes. The runs of an arm without any verdict count as missing.
// - `metrics`: names of the only metrics that can fail, for example "test-accuracy". Empty: all.
// - An arm that has no verdict on them passes if another metric shows that its runs have finished.
std::vector<std::string> gate_failures(std::span<const reports::Comparison> comparisons, FailOnWords words,
                                       const std::set<std::string>& metrics = {});

}  // namespace trainyard::tools
