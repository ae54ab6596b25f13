// Lines of the fairness list that say what both arms of each pair share: global batch, first weights, order
// of the data, version of LibTorch. A line is ticked only if the records of all compared runs show it. If an
// arm does not state the term, the line says "not stated by ARM". Used by `fairness`.
#pragma once

#include <vector>

#include "reports/verdicts/fairness.h"

namespace trainyard::reports {

std::vector<Statement> term_statements(const ReportData& data, const experiments::Compare& compare,
                                       const std::vector<Cell>& cells);

// Of all runs that have records, compared or not.
Statement libtorch_statement(const ReportData& data);

}  // namespace trainyard::reports
