// The fairness list of a report ("Is this comparison fair?"): statements that are derived from the data.
// A condition is ticked only if the records of all compared runs prove it.
#pragma once

#include <vector>

#include "reports/results/cells.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

std::vector<Statement> fairness_statements(const ReportData& data, const experiments::Compare& compare,
                                           const std::vector<CellRuns>& cells);

// Result of the fair-comparison contract per arm: broken, not comparable, not verified, declared,
// and the caveats of its verdicts.
std::vector<Statement> contract_statements(const std::vector<CellVerdicts>& cells);

}  // namespace trainyard::reports
