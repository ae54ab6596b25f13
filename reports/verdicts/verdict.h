// Verdicts: one per arm, cell and metric. The procedure is in docs/verdicts-and-statistics.md: differences
// per pair, three-sided test against the margin after each look, and Holm's correction over the cells of one
// metric and one arm. Verdicts are computed from the data each time and never stored.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/document/report.h"
#include "reports/results/cells.h"
#include "reports/results/metrics.h"
#include "reports/statistics/sequential.h"
#include "reports/statistics/statistics.h"
#include "reports/verdicts/comparability.h"

namespace trainyard::reports {

// A verdict with the numbers of its test.
struct TestedVerdict : Verdict {
  double delta = 0;                  // the margin δ, on the scale of the differences
  double sign = 1;                   // of the differences (`Measure`)
  bool diverged = false;             // decided by divergence, not by the test
  bool constant = false;             // all differences are equal: tested by their signs
  bool tested = false;               // part of its family's test
  std::optional<Estimate> estimate;  // of the differences; empty if n < 2
  std::optional<double> difference;  // of the only pair, if n = 1
  ThreeSided three_sided;            // before Holm
  double adjusted_p = 1;             // after Holm
};

struct CellVerdicts {
  CellRuns cell;
  std::vector<TestedVerdict>
      verdicts;  // by arm, then metric, without metrics that are not defined for the arm
  std::vector<Comparability> comparability;  // of each arm, in the order of the cell
  // By arm: the largest p after Holm of its published metrics that further pairs of its plan may decide. Not the arms
  // that need no more pairs.
  std::map<std::string, double> undecided = {};
  std::set<std::string> times_undecided = {};  // arms whose verdicts need pairs with times that count
  const TestedVerdict* find(const std::string& arm, const std::string& metric) const;  // null: not defined
};

// Cells that are in the journal use seeds, margins and α of their first plan, others those of `compare`.
std::vector<CellVerdicts> judge(const ReportData& data, const experiments::Compare& compare);

}  // namespace trainyard::reports
