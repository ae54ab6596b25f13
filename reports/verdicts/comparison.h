// All verdicts of one `[[compare]]`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/format/figure.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

struct Comparison {
  experiments::Compare compare;
  std::vector<CellVerdicts> cells;
  std::vector<Figure> effects = {};  // forest plots
  std::string experiment = {};       // its name in a report of several; empty in a report of one
  // End of its file names and anchors, unique in the report: "" for the first, "-batch-32" for another one of
  // the same experiment, "-first-strategy-single" in a report of several.
  std::string slug_end = {};
};

// "Verdicts against single"; in a report of several experiments "first: verdicts against single".
std::string heading(const Comparison& comparison, const std::string& what = "Verdicts");

bool has_verdicts(const Comparison& comparison);  // false: there is no arm to compare with the baseline
// The text to show instead: "No verdicts: there is no arm of strategy to compare with single."
std::string no_verdicts_text(const Comparison& comparison);

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
Comparison compare_groups(ReportData& data, const GroupOptions& options);

}  // namespace trainyard::reports
