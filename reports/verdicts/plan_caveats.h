// What weakens a verdict because of how its runs were planned, from the journal:
// - REMOVED: results of planned runs were removed and have not been trained again
// - REPLACED: runs were trained again after their results could be seen, and the results differ
// - EXPLORATORY: both runs of a pair had results before the comparison was planned, or the report has only
//   selected runs
// - VERSIONS: the settings or the program of an arm changed under its name after it had results
// Used by `judge`.
#pragma once

#include <vector>

#include "reports/results/cells.h"
#include "reports/results/metrics.h"
#include "reports/verdicts/comparability.h"

namespace trainyard::reports {

// Whether the run had a result that was removed. It is planned, and counts as not finished.
bool was_removed(const ReportData& data, const Observation& observation);

// Those of one arm that are the same for every metric.
std::vector<Caveat> plan_caveats(const ReportData& data, const experiments::Compare& compare,
                                 const CellRuns& cell, const ArmRuns& arm);

// One per arm with replaced results of this metric. Times that did not count may be replaced.
std::vector<Caveat> replaced_results(const ReportData& data, const experiments::Compare& compare,
                                     const CellRuns& cell, const ArmRuns& arm, const Metric& metric);

}  // namespace trainyard::reports
