// The fair-comparison contract held against results: may the runs of an arm be compared with those of its
// baseline? What differs and is not declared makes them NOT COMPARABLE, an arm that trains something else is
// BROKEN, what a foreign arm leaves out makes its verdicts NOT VERIFIED. See experiments/design/contract.h.
#pragma once

#include <string>
#include <vector>

#include "experiments/design/contract.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

// What one run states of each term: our own arms by the resolved run and its records, a foreign arm by its
// records alone.
struct RunTerms {
  experiments::StatedTerms stated;
  bool foreign = false;
  bool recorded = false;  // there are records of it
};
RunTerms terms_of(const ReportData& data, const db::RunSummary& run);

struct Comparability {
  std::vector<std::string> refused;        // "global batch 256 against 128", each term once
  std::vector<std::string> times_refused;  // what spoils times alone
  std::vector<std::string> declared;    // meant differences: by `differs`, or what the mesh changes by itself
  std::vector<std::string> not_stated;  // terms that a foreign arm or baseline leaves out
  std::string broken;  // what the arm computes otherwise, with the first layer; empty: nothing
  bool verified() const { return not_stated.empty(); }
};

// Pair by pair, unpaired: run by run.
Comparability comparability_of(const ReportData& data, const experiments::Compare& compare, const Cell& cell,
                               const Arm& arm);

// What the probes of an arm's runs show that should not be: replicas with different parameters, a loss or a
// gradient beyond the tolerance of float32 beside the reference. Empty where all is well, or nothing is
// known.
std::string broken_by_probes(const ReportData& data, const Arm& arm);

// Names of the arms and baselines of which no run was probed: "MLP ddp".
std::vector<std::string> not_probed(const ReportData& data, const std::vector<Cell>& cells);

}  // namespace trainyard::reports
