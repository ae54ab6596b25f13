// Lines of the fairness list on terms that both arms of a pair must share: global batch, initial weights,
// data order, version of LibTorch. A line is ticked only if the records of all compared runs prove it. If an
// arm does not state the term, the line reads "not stated by ARM". Used by `fairness`.
#pragma once

#include <vector>

#include "reports/verdicts/fairness.h"

namespace trainyard::reports {

std::vector<Statement> term_statements(const ReportData& data, const experiments::Compare& compare,
                                       const std::vector<CellRuns>& cells);

// Covers all finished runs that have records, compared or not.
Statement libtorch_statement(const ReportData& data);

}  // namespace trainyard::reports
