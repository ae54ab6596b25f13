// Numbers of the tables of publications, beside those of the runs that they are about.
#pragma once

#include <vector>

#include "reports/document/report.h"
#include "reports/verdicts/comparison.h"

namespace trainyard::reports {

// - A percentage is paired like a verdict: geometric mean over pairs of the arm's value divided by the baseline's.
//   The comparison must have the axis and the benchmark of the publication.
// - Total training time is the sum over all epochs. It counts if the times of the run count and no epoch was
//   disturbed.
// - Numbers without runs of this report are left out. So are those of earlier epochs if `data` has no epochs.
std::vector<PublishedNumber> published_numbers(const ReportData& data,
                                               const std::vector<JudgedComparison>& comparisons);

}  // namespace trainyard::reports
