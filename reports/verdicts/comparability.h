// Checks the fair-comparison contract (experiments/design/contract.h) for the runs of an arm and its
// baseline.
// - NOT COMPARABLE: a term differs and the difference is not declared.
// - BROKEN: the parity check found that the arm trains something else.
// - NOT VERIFIED: a foreign arm does not state all terms.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "experiments/design/contract.h"
#include "reports/document/report.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

// The terms that one run states: our own arms by the resolved run and its records, a foreign arm only by its
// records.
struct RunTerms {
  experiments::StatedTerms stated;
  bool foreign = false;
  // What a recorded script takes its data order from: "RandomSampler of train.py:12". Empty: not known.
  std::string order = {};
  double first_gradient = NAN;                      // its norm at step 1 in a recorded script; NaN: not known
  double first_loss = NAN;                          // training loss of epoch 1; NaN: not known
  std::size_t batch_statistics = 0;                 // ranks of a recorded script with batch normalisation
  std::string term(const std::string& name) const;  // its text; empty: not stated
};
RunTerms terms_of(const ReportData& data, const db::RunSummary& run);

inline constexpr const char* exploratory_mark = "EXPLORATORY";

inline constexpr const char* settings_mark = "SETTINGS";  // other build or environment
inline constexpr const char* doubtful_mark =
    "DOUBTFUL";  // first losses or gradients far apart, from equal weights

// "seed 3", "seed=3 fold=1"; if arms are not paired "run 3fa9…".
std::string pair_name(const Observation& observation, const experiments::Compare& compare);

// Compares pair by pair; unpaired arms run by run.
Comparability comparability_of(const ReportData& data, const experiments::Compare& compare,
                               const CellRuns& cell, const ArmRuns& arm);

// Why the arms must not be compared in a metric, whatever their values are; empty if they may be.
std::string refusal(const Comparability& found, const Metric& metric);

// Whether a run of the arm had a parity check.
bool has_parity_check(const ReportData& data, const ArmRuns& arm);

// Names of the arms and baselines without any parity check: "MLP ddp".
std::vector<std::string> not_probed(const ReportData& data, const std::vector<CellRuns>& cells);

// "CNN ddp: the gradient of layer 0.weight …", one line per arm that the parity check found BROKEN. Works
// before any run has finished an epoch.
std::vector<std::string> broken_arms(const ReportData& data);

}  // namespace trainyard::reports
