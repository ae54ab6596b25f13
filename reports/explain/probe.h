// What `trainyard explain --probe` measures: an arm and one process compute the gradient of the same samples with the same
// weights (docs/explain.md).
#pragma once

#include "experiments/design/ladder.h"
#include "reports/format/table.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

// The runs to train in `folder`. UserError if they are not scripts that the recorder has seen, or if the baseline is not
// one process.
experiments::Probe probe_of(const ReportData& data, const db::RunSummary& baseline, const db::RunSummary& arm,
                            const std::string& folder);

// A row per step. The notes say whether the gradients are equal, and else how they differ. UserError if `data` has no probe.
Table probe_table(const ReportData& data, const experiments::Probe& probe);

}  // namespace trainyard::reports
