// Split of a graph into stages, balanced by the estimated cost of the nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/run/run.h"

namespace trainyard::experiments {

struct Experiment;

// The first items of parts 1 … parts − 1, if `costs` (each >= 0) are cut into consecutive, non-empty parts.
// The cost of the most expensive part is minimal. Ties are resolved
// 1. by the least sum of squared costs, then
// 2. by the latest boundaries, compared from the last one. Layers without cost thus stay with the layer
// before. Requires 1 <= parts <= costs.size(). O(parts · n²).
std::vector<std::int64_t> balanced_boundaries(const std::vector<double>& costs, std::int64_t parts);

// Fills in the boundaries of every run with stage_split = "auto", and the layers of tensor_split = "auto". Requires that
// the data is resolved. UserError if a split does not fit the data.
void resolve_stages(Experiment& experiment);

// The layers of each stage: "0-3 | 4-6 (58.1 + 41.9 % of the estimated cost)". Empty for one stage.
std::string stages_text(const Run& run);

}  // namespace trainyard::experiments
