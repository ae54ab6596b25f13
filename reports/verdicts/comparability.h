// Checks the fair-comparison contract (experiments/design/contract.h) for the runs of an arm and its
// baseline.
// - NOT COMPARABLE: a term differs and the difference is not declared.
// - BROKEN: the parity check found that the arm trains something else.
// - NOT VERIFIED: a foreign arm does not state all terms.
#pragma once

#include <string>
#include <vector>

#include "experiments/design/contract.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

// The terms that one run states: our own arms by the resolved run and its records, a foreign arm only by its
// records.
struct RunTerms {
  experiments::StatedTerms stated;
  bool foreign = false;
  bool recorded = false;  // the run has records
};
RunTerms terms_of(const ReportData& data, const db::RunSummary& run);

// What weakens a word without refusing it. Every output shows the mark with the word, and the text in its row.
struct Caveat {
  std::string mark;  // one word in capital letters: "REPLACED"
  std::string text;  // names runs or seeds, values and numbers
};

inline constexpr const char* replaced_mark = "REPLACED";  // `compare --fail-on replaced` looks for it
inline constexpr const char* exploratory_mark = "EXPLORATORY";

struct Comparability {
  std::vector<std::string> refused;  // undeclared differences, each term once: "global batch 256 against 128"
  std::vector<std::string> times_refused;  // undeclared differences that concern only times
  std::vector<std::string> declared;       // differences declared by `differs` or implied by the mesh
  std::vector<std::string> not_stated;     // terms that a foreign arm or baseline does not state
  std::vector<Caveat> caveats;             // for metrics other than times and energy
  std::string broken;                      // failure of the parity check, with the first layer; else empty
  bool verified() const { return not_stated.empty(); }
};

inline constexpr const char* settings_mark = "SETTINGS";  // other build or environment
inline constexpr const char* doubtful_mark = "DOUBTFUL";  // first losses far apart, from equal weights

// "seed 3", "seed=3 fold=1"; if arms are not paired "run 3fa9…".
std::string pair_name(const Observation& observation, const experiments::Compare& compare);

// Compares pair by pair; unpaired arms run by run.
Comparability comparability_of(const ReportData& data, const experiments::Compare& compare, const Cell& cell,
                               const Arm& arm);

// The first failure in the parity checks of an arm's runs: replicas with different parameters, or a loss or
// gradient that differs from the reference by more than the tolerance. Empty if there is none.
std::string broken_by_probes(const ReportData& data, const Arm& arm);

// Names of the arms and baselines without any parity check: "MLP ddp".
std::vector<std::string> not_probed(const ReportData& data, const std::vector<Cell>& cells);

}  // namespace trainyard::reports
