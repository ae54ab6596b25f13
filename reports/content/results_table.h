// The results themselves: mean, 95 % t interval and number of runs of each metric, per cell and arm. As a table
// for people, and as numbers for programs.
//
// - Runs: all finished runs of the arm. Values that are not finite are left out, and so are times and energy
//   that do not count.
// - n, mean and sd equal, bit for bit, `groupby(…).agg(["count", "mean", "std"])` of pandas 2.3 over the same runs
//   in the order of `trainyard export final`.
// - A mean is "best" if it is the best one of the arms of its cell that can be compared: not BROKEN, not NOT
//   COMPARABLE, and with values for the same pairs as the baseline. It says nothing about significance.
#pragma once

#include <vector>

#include "reports/content/paper_tables.h"
#include "reports/format/table.h"
#include "reports/verdicts/comparison.h"

namespace trainyard::reports {

struct Results {
  PaperTable table;  // one row per kind of metric and arm, one column per phase; the best means in bold
  Table numbers;     // exact: one row per cell, arm and metric, in the units of the database
};

// A cell whose runs are all in an earlier comparison is left out.
Results make_results(const std::vector<Comparison>& comparisons);

}  // namespace trainyard::reports
