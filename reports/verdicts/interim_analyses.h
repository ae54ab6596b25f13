// The looks of a cell, from the journal. Adding seeds until a verdict appears would be optional stopping. So
// each set of seeds that was planned for the cell is one look with its own part of α. Margins and α are those
// of the first plan. A report is not a look. See "Looks" in docs/verdicts-and-statistics.md.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "reports/results/cells.h"
#include "reports/statistics/procedure.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

struct InterimPlan {
  experiments::Compare rules;  // margins, α and `final` of the first entry that planned the cell
  // Pairs (unpaired: run keys) of each look. A set of seeds that is too small for any test is not a look. The
  // choice does not depend on the results.
  std::vector<std::set<std::string>> looks;
  std::vector<std::string> changes;  // by later entries: "margin of time was 1.05 in the first plan, now 1.1"
};

// Whether two plans compare the same axis with the same baseline.
bool same_comparison(const experiments::Compare& a, const experiments::Compare& b);

// The looks of one arm of `cell` against its baseline. `compare`: the comparison in the latest entry.
InterimPlan plan_interim_analyses(const ReportData& data, const experiments::Compare& compare,
                                  const CellRuns& cell, const ArmRuns& arm);

// The runs of `arm` whose pair is in the look.
ArmRuns runs_in(const ArmRuns& arm, const std::set<std::string>& look);

// One preliminary verdict per look, before the correction of its family: differences, estimate, test. Its
// word is INTERIM, NOT TIMED, NO DATA or decided by divergence, else INCONCLUSIVE. Used by `verdict`.
std::vector<TestedVerdict> at_looks(const CellRuns& cell, const ArmRuns& arm, const Metric& metric,
                                    const InterimPlan& plan);

}  // namespace trainyard::reports
