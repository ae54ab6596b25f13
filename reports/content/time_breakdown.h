// Where the time of an epoch goes: stacked bars of each cell's arms, as percent of its baseline's epoch.
#pragma once

#include <vector>

#include "reports/format/figure.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

// `missing` is set where no run has its time taken apart.
Figure make_time_breakdown(const ReportData& data, const std::vector<Cell>& cells);

}  // namespace trainyard::reports
