// Mesh and schedule of one run.
#pragma once

#include "experiments/config/problems.h"
#include "experiments/matrix/run_settings.h"
#include "experiments/run/run.h"

namespace trainyard::experiments {

// Reports what the strategy's kind does not have, and numbers out of its ranges.
Strategy resolve_strategy(const RunSettings& settings, Problems& problems);

}  // namespace trainyard::experiments
