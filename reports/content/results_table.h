// The results themselves: mean, 95 % t interval and number of runs of each metric, per cell and arm. As a table
// for people, and as numbers for programs.
#pragma once

#include <vector>

#include "reports/content/paper_tables.h"
#include "reports/document/report.h"
#include "reports/format/table.h"

namespace trainyard::reports {

struct Results {
  PaperTable table;  // one row per kind of metric and arm, one column per phase; the best means in bold
  Table numbers;     // exact: one row per cell, arm and metric, in the units of the database
};

// A cell whose runs are all in an earlier comparison is left out.
Results make_results(const std::vector<Comparison>& comparisons);

}  // namespace trainyard::reports
