// The comparisons of a file held against its runs: which values the axis has, and whether the baseline is
// one, and whether what is compared can be: see experiments/design/contract.h.
#pragma once

#include <vector>

#include "experiments/config/problems.h"
#include "experiments/config/sheet.h"
#include "experiments/design/compare.h"
#include "experiments/matrix/expand.h"

namespace trainyard::experiments {

// Without [compare]: strategies against "single", where the runs have both; else none. `varied`: names of the
// axes that differ among the runs. Runs that are NOT COMPARABLE are warned of, with what differs.
std::vector<Compare> comparisons(const Sheet& sheet, const std::vector<ExpandedRun>& runs,
                                 const std::vector<std::string>& varied, Problems& problems);

}  // namespace trainyard::experiments
