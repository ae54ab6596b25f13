// Speed-ups of the arms of a cell, the limit of the machine, the parts of their time, and timelines of steps.
#pragma once

#include "reports/document/report.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

// Adds to each arm its speed-up, the mean seconds of each part of an epoch over the runs that recorded them, from times
// that count, and the timeline of a step that all ranks of a run have recorded. Adds the machine's limits: their runs
// differ from the cell's baseline only in seed and epochs, and ran under the same circumstances. Source: runs of a
// strategy of kind `independent`, by pair, else single runs of a packed sweep. A limit above the number of runs at once
// is impossible: it is left out, and a statement names its runs.
void add_scaling(const ReportData& data, const CellRuns& runs, Cell& cell,
                 std::vector<Statement>& statements);

}  // namespace trainyard::reports
