// From the sheet to complete runs: the product of the matrix, less what [[exclude]] matches, with the rows of
// [[include]] after it. Order: model, strategy, other axes as in the file, seed last (fastest).
// Of each key the strongest value counts: matrix or row, --set, [strategy.*], [model.*], [defaults], its
// default.
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
  Location strategy_at;  // where its strategy stands
  Location threads_at;   // where `threads` stands; else where the run does
};

// Number of runs of the matrix, nothing excluded, without making them; saturates instead of overflowing.
std::size_t product_size(const Matrix& matrix);

// Reports combinations that cannot be, and runs that are the same; those are left out.
std::vector<ExpandedRun> expand(const ExperimentConfig& sheet, Diagnostics& problems);

// Names of axes with more than one value among `runs`, in the order of the matrix.
std::vector<std::string> varied_axes(const ExperimentConfig& sheet, const std::vector<ExpandedRun>& runs);

// The comparisons of a file held against its runs: which values the axis has, and whether the baseline is
// one, and whether what is compared can be: see experiments/design/contract.h.

// Without [compare]: strategies against "single", where the runs have both; else none. `varied`: names of the
// axes that differ among the runs. Runs that are NOT COMPARABLE are warned of, with what differs.
std::vector<Compare> comparisons(const ExperimentConfig& sheet, const std::vector<ExpandedRun>& runs,
                                 const std::vector<std::string>& varied, Diagnostics& problems);

}  // namespace trainyard::experiments
