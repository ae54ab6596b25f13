// Where a chain of layers is cut into stages: the counted cost of its layers, balanced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/run/run.h"

namespace trainyard::experiments {

struct Experiment;

// The chain of the run's model. UserError where it cannot be made for this input.
std::vector<models::Layer> model_layers(const Run& run, const models::InputShape& input);

// The first item of parts 1 … parts − 1 of `costs` (each >= 0) cut into consecutive, non-empty parts such
// that the most costly part costs as little as any cut allows. Of such cuts that with the least sum of
// squared costs; of those the one whose boundaries are latest, the last first, so that layers of no cost stay
// with the layer before them. Needs 1 <= parts <= costs.size(); O(parts · n²).
std::vector<std::int64_t> balanced_boundaries(const std::vector<double>& costs, std::int64_t parts);

// Fills in the boundaries of every run that leaves them to the counted cost. The input of its data is known.
void resolve_stages(Experiment& experiment);

// "0-3 | 4-6 (58.1 + 41.9 % of the counted cost)": each stage's layers; empty for one stage.
std::string stages_text(const Run& run);

}  // namespace trainyard::experiments
