// Curves of a cell: epoch rows of an arm's runs by replica, and their means over seeds.
#pragma once

#include "reports/document/report.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

// Adds the curves of each arm. `cell` has its verdicts already. Runs are the finished ones, or running ones if
// none has finished.
void add_curves(const ReportData& data, const CellRuns& runs, Cell& cell);

}  // namespace trainyard::reports
