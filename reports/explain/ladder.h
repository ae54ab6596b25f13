// What each change of a ladder does to the result: paired differences between neighbouring strategies
// (docs/explain.md).
#pragma once

#include "experiments/design/ladder.h"
#include "reports/format/table.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

// The steps between two runs of one model. UserError if the baseline is not one process of trainyard.
experiments::Ladder ladder_between(const db::RunSummary& baseline, const db::RunSummary& arm);

// A row per step, then their sum, the arm, what is not explained, and the remedies. The notes have the answer: "not explained"
// if the steps make less than 80 % of a change that is not 0.
Table ladder_table(const ReportData& data, const experiments::Ladder& ladder);

// Seconds of an epoch on the way to the arm: an N-th of an epoch of the baseline, then what each step adds. No rows if the arm
// has no such steps.
Table ladder_of_times(const ReportData& data, const experiments::Ladder& ladder);

}  // namespace trainyard::reports
