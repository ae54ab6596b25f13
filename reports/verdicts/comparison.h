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
};

bool has_verdicts(const Comparison& comparison);  // else no arm stands beside the baseline
// What every renderer says instead: "No verdicts: no arm of strategy stands beside single."
std::string no_verdicts_text(const Comparison& comparison);

// A comparison of two groups of runs that a user names, for `trainyard compare A B`. What the experiment's
// file compares anyway is judged by its rules; anything else is judged in the same way and marked as not
// planned.

struct GroupOptions {
  std::string baseline;              // A: "single", "strategy=ddp,batch=64", or the beginning of a run's key
  std::string arm;                   // B
  std::vector<std::string> differs;  // differences that are meant, beside those that A and B name
};

// UserError where a name is that of no value of a run and of no term of the contract: it would declare
// nothing.
void check_differs(const ReportData& data, const std::vector<std::string>& differs);

// A and B are values of the axis that the file compares first, conditions NAME=VALUE (all hold, with commas),
// or single runs. `data` is narrowed to the runs of both and must outlive the result. UserError where a name
// or value is unknown, where no run or no pair is left, and where a run is in both.
Comparison compare_groups(ReportData& data, const GroupOptions& options);

}  // namespace trainyard::reports
