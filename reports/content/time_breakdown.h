// Time breakdown of an epoch: stacked bars of each cell's arms, in percent of the baseline's epoch time.
#pragma once

#include <vector>

#include "reports/format/figure.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

// `missing` is set if no run recorded the parts of its time.
Figure make_time_breakdown(const ReportData& data, const std::vector<Cell>& cells);

}  // namespace trainyard::reports
