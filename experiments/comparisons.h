// The comparisons of a file held against its runs: which values the axis has, and whether the baseline is
// one.
#pragma once

#include <vector>

#include "experiments/compare.h"
#include "experiments/expand.h"
#include "experiments/problems.h"
#include "experiments/sheet.h"

namespace trainyard::experiments {

// Without [compare]: strategies against "single", where the runs have both; else none.
std::vector<Compare> comparisons(const Sheet& sheet, const std::vector<ExpandedRun>& runs,
                                 Problems& problems);

}  // namespace trainyard::experiments
