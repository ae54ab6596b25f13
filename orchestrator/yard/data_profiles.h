// What the data sets of an experiment look like, for the journal.
#pragma once

#include <vector>

#include "experiments/design/data_profiles.h"
#include "experiments/design/experiment.h"

namespace trainyard::orchestrator {

// One for each data set of the runs, in their order; those of `known` are not read again. The runs' data is
// resolved.
std::vector<experiments::ProfiledData> data_profiles(const experiments::Experiment& experiment,
                                                     const std::vector<experiments::ProfiledData>& known);

}  // namespace trainyard::orchestrator
