// Expansion of an experiment file to complete runs: the product of the matrix without what [[exclude]]
// matches, then the rows of [[include]].
// - Order: model, strategy, other axes as in the file, seed (fastest).
// - Precedence of values: matrix or row, --set, [strategy.*], [model.*], [defaults], default of the key.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/config/diagnostics.h"
#include "experiments/design/experiment.h"
#include "experiments/run/run.h"

namespace trainyard::experiments {

struct ExpandedRun {
  Run run;
  Location strategy_at;  // location of its strategy
  Location threads_at;   // location of `threads`, or of the run
};

// The runs. Impossible combinations and repeated runs are reported and left out.
std::vector<ExpandedRun> expand(const ExperimentConfig& config, Diagnostics& problems);

// Names of axes with more than one value among `runs`, in the order of the matrix.
std::vector<std::string> varied_axes(const ExperimentConfig& config, const std::vector<ExpandedRun>& runs);

// The comparisons of a file, checked with its runs. `varied`: names of the axes that differ among the runs.
// - Without [compare], strategies are compared with "single" if the runs have both.
// - A baseline that is not a value of the axis is an error.
// - Runs that are NOT COMPARABLE (experiments/design/contract.h) get a warning with the difference.
std::vector<Compare> comparisons(const ExperimentConfig& config, const std::vector<ExpandedRun>& runs,
                                 const std::vector<std::string>& varied, Diagnostics& problems);

}  // namespace trainyard::experiments
