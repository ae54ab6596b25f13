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
  // Pairs (unpaired: run keys) of each look; a look has those of the one before it and at least one more.
  // Sets that are too small for any test are no look: the choice does not depend on what came out.
  std::vector<std::set<std::string>> looks;
  std::vector<std::string> changes;  // "margin of time 1.05, now 1.1": what a later entry changed
};

// Of one arm of `cell` against its baseline. `compare` is the comparison as the latest entry has it.
InterimPlan plan_interim_analyses(const ReportData& data, const experiments::Compare& compare,
                                  const Cell& cell, const Arm& arm);

// The runs of `arm` whose pair is in the look.
Arm runs_in(const Arm& arm, const std::set<std::string>& look);

// One verdict at each of its looks, before its family decides: differences, estimate, test. Used by
// `verdict`.

// Words so far: INTERIM, what a divergence decides, else INCONCLUSIVE, with the reason where it is not
// tested.
std::vector<Verdict> at_looks(const Cell& cell, const Arm& arm, const Metric& metric,
                              const InterimPlan& plan);

}  // namespace trainyard::reports
