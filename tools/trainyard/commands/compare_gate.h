// The gate of `trainyard compare --fail-on WORDS`: which verdicts let CI fail. Pure functions; the table in
// docs/comparing.md has every cell, and a test holds it against them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/verdicts/verdict_text.h"

namespace trainyard::tools {

enum class FailOn { deteriorates, broken, not_comparable, not_verified, undecided, missing };

struct FailOnWord {
  std::string name;  // "not-comparable"
  FailOn value;
  std::string about;  // one line for --help
};
std::span<const FailOnWord> fail_on_words();

// UserError with the nearest word if one is unknown.
std::vector<FailOn> parse_fail_on(const std::vector<std::string>& words);

// The part of a verdict that the gate looks at.
struct GateCase {
  reports::VerdictKind word = reports::VerdictKind::inconclusive;
  bool tested = true;  // took part in a test; false, for instance, for fewer than 3 pairs
  bool verified = true;
  bool left_out = false;  // a planned pair was left out, for instance because its run failed
};
GateCase gate_case(const reports::VerdictRecord& record);

bool fails(const GateCase& verdict, FailOn word);

// One line per arm and verdict that fails: "MLP ddp: BROKEN (train loss, train seconds): …". Empty if the
// gate passes. An arm without any verdict counts as one whose runs are missing.
std::vector<std::string> gate_failures(std::span<const reports::Comparison> comparisons,
                                       std::span<const FailOn> words);

}  // namespace trainyard::tools
