// The results themselves: mean, 95 % t interval and number of runs of each metric, per cell and arm.
#pragma once

#include "reports/document/report.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

// Mean and 95 % t interval of the finite values. For one value, low and high are NaN.
Point mean_point(double x, const std::vector<double>& values);

// Adds the samples of each arm.
void add_samples(const CellVerdicts& judged, const experiments::Compare& compare, Cell& cell);

}  // namespace trainyard::reports
