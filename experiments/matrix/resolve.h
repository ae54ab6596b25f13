// One point of the matrix, or one added row, to the complete run that it stands for.
#pragma once

#include "experiments/config/problems.h"
#include "experiments/config/sheet.h"
#include "experiments/matrix/run_settings.h"
#include "experiments/run/run.h"

namespace trainyard::experiments {

// Every key resolved; data not yet found. Reports what cannot be combined, at the value to be changed.
Run resolve(const Sheet& sheet, const Point& point, Problems& problems);

}  // namespace trainyard::experiments
