// Speed-ups of the arms of a cell, the limit of the machine, and the parts of their time.
#pragma once

#include "reports/document/report.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

// Adds the speed-up of each arm and the machine's limits. Runs of a limit differ from the cell's baseline only
// in seed and epochs and do not share devices. Source: runs of a strategy of kind `independent`, by pair, else
// single runs of a packed sweep.
void add_scaling(const ReportData& data, const CellRuns& runs, Cell& cell);

// Adds the mean seconds of each part of an epoch, over the finished runs that recorded them.
void add_time_parts(const ReportData& data, const CellRuns& runs, Cell& cell);

}  // namespace trainyard::reports
