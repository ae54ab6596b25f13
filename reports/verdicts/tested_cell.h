// One metric of one cell and arm: its differences in the order of the plan, and the test after each look. Used by
// `judge`, which corrects for the other cells of the family.
#pragma once

#include <optional>
#include <vector>

#include "reports/statistics/sequential.h"
#include "reports/verdicts/first_plan.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

struct TestedCell {
  // Its word is INTERIM, NO DATA or decided by divergence, else INCONCLUSIVE. The numbers are those of
  // all pairs.
  TestedVerdict verdict;
  std::vector<double>
      differences;  // of the pairs, in the order of the plan; empty if the arms are not paired
  std::vector<double> baseline, arm;  // the values of the metric
  double least_spread = 0;            // of the differences: the step of an accuracy
  SequentialCell looks;               // none if it was not tested
  int open_pairs = 0;                 // of the plan, after those that have finished
  // The verdict of a divergence behind the pairs above. It holds if these do not decide.
  std::optional<TestedVerdict> diverged = {};
};

TestedCell tested_cell(const ReportData& data, const CellRuns& cell, const ArmRuns& arm, const Metric& metric,
                       const FirstPlan& plan);

// The same with all pairs of later plans too, as one look; empty if there are none, or if one has not finished.
std::optional<TestedCell> tested_later(const ReportData& data, const CellRuns& cell, const ArmRuns& arm,
                                       const Metric& metric, const FirstPlan& plan);

// Sets the numbers of the verdict to those of the first `n` differences.
void keep_pairs(TestedCell& tested, int n);

}  // namespace trainyard::reports
