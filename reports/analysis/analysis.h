// From the data of the database to the report value: verdicts, curves, results, speed-ups, time parts and the
// evidence of fairness. A pure function, so tests can invent the data.
#pragma once

#include <vector>

#include "reports/document/report.h"
#include "reports/results/report_data.h"
#include "reports/verdicts/comparison.h"

namespace trainyard::reports {

Report make_report(const ReportData& data);

// The same on these comparisons, without curves, speed-ups and time parts, for `compare`.
Report make_report(const ReportData& data, const std::vector<JudgedComparison>& comparisons);

}  // namespace trainyard::reports
