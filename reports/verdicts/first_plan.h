// The first plan of a cell, from the journal, and the marks of a verdict that depend on how its runs were planned. It fixes the seeds, their order, the looks, the margins and α before
// any result. Adding seeds until a word appears would be optional stopping, so a word of later seeds is
// EXPLORATORY. See "When a cell is decided" in docs/verdicts-and-statistics.md.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "reports/results/cells.h"
#include "reports/results/metrics.h"
#include "reports/statistics/sequential_levels.h"
#include "reports/verdicts/comparability.h"

namespace trainyard::reports {

struct FirstPlan {
  experiments::Compare rules;  // margins and α of the first entry that planned the cell
  Looks looks;                 // at these numbers of pairs
  // Pairs (unpaired: run keys) of the first entry that planned enough for a test, without those that later plans
  // gave up. The choice does not depend on the results.
  std::set<std::string> pairs;
  std::set<std::string> later;       // pairs that only later entries planned
  std::size_t abandoned = 0;         // pairs that a later plan gave up, if there is one look
  std::vector<std::string> changes;  // by later entries: "margin of time was 1.05 in the first plan, now 1.1"
};

// Whether two plans compare the same axis with the same baseline.
bool same_comparison(const experiments::Compare& a, const experiments::Compare& b);

// The plan of one arm of `cell` against its baseline. `compare`: the comparison in the latest entry.
FirstPlan first_plan(const ReportData& data, const experiments::Compare& compare, const CellRuns& cell,
                     const ArmRuns& arm);

// The runs of `arm` whose pair is one of these.
ArmRuns runs_in(const ArmRuns& arm, const std::set<std::string>& pairs);

// What weakens a verdict because of how its runs were planned:
// - REMOVED: results of planned runs were removed and have not been trained again
// - REPLACED: runs were trained again after their results could be seen, and the results differ
// - EXPLORATORY: both runs of a pair had results before the comparison was planned, or the report has only
//   selected runs
// - VERSIONS: the settings or the program of an arm changed under its name after it had results
// `plan_caveats`: those of one arm that are the same for every metric.
std::vector<Caveat> plan_caveats(const ReportData& data, const experiments::Compare& compare,
                                 const CellRuns& cell, const ArmRuns& arm);

// One per arm with replaced results of this metric. Times that did not count may be replaced.
std::vector<Caveat> replaced_results(const ReportData& data, const experiments::Compare& compare,
                                     const CellRuns& cell, const ArmRuns& arm, const Metric& metric);

}  // namespace trainyard::reports
