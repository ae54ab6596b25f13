// Studies of numeric axes: final metrics and time per epoch over learning rate, batch, threads …
#pragma once

#include <vector>

#include "reports/document/report.h"
#include "reports/verdicts/comparison.h"

namespace trainyard::reports {

// One study per numeric axis that is not of the model, the strategy, the seed or the pairing. Axes that change
// together are one study.
std::vector<ParameterStudy> parameter_studies(const ReportData& data,
                                              const std::vector<JudgedComparison>& comparisons);

}  // namespace trainyard::reports
