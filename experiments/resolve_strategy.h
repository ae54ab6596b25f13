// Mesh and schedule of one run.
#pragma once

#include "experiments/problems.h"
#include "experiments/run.h"
#include "experiments/run_settings.h"

namespace trainyard::experiments {

// Reports what the strategy's kind does not have, and numbers out of its ranges.
Strategy resolve_strategy(const RunSettings& settings, Problems& problems);

}  // namespace trainyard::experiments
