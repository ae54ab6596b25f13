// All verdicts of one `[[compare]]`.
#pragma once

#include <string>
#include <vector>

#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

struct JudgedComparison {
  experiments::Compare compare;
  std::vector<CellVerdicts> cells;
  std::string experiment = {};  // as in `Comparison`
  std::string slug_end = {};
};

// Two groups of runs, for `trainyard compare A B`. If the experiment file compares them, its rules hold.
// Other groups use the same method and get a note that the comparison was not planned.
struct GroupOptions {
  std::string baseline;              // A: "single", "strategy=ddp,batch=64", or the start of a run key
  std::string arm;                   // B
  std::vector<std::string> differs;  // declared differences, in addition to the names in A and B
};

// UserError if a name is neither a value of a run nor a term of the contract.
void check_differs(const ReportData& data, const std::vector<std::string>& differs);

// Compares groups A and B. A group is a value of the axis of the first comparison in the file, conditions
// "NAME=VALUE,…" that must all hold, or a single run.
// - May remove all other runs from `data`, which must outlive the result.
// - UserError: a name or value is unknown, no run or pair is left, or a run is in both groups.
JudgedComparison compare_groups(ReportData& data, const GroupOptions& options);

}  // namespace trainyard::reports
