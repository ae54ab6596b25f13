// Panels of a cell: metrics by epoch, differences from the baseline, validation loss over time, and scaling.
#pragma once

#include <string>
#include <vector>

#include "reports/content/curves.h"
#include "reports/document/metrics.h"
#include "reports/document/report.h"
#include "reports/format/figure.h"

namespace trainyard::reports {

// Metrics that no run has are left out. If the curves of a metric lie on each other, their differences follow.
std::vector<Figure> make_panels(const Report& report, const Cell& cell, const Palette& palette);

// "Not defined for this task: training accuracy." Names the usual metrics without a panel; empty if there is
// none.
std::string lacking_text(const Report& report, const Cell& cell, const std::vector<Figure>& panels);

// Whether the curves of the arms lie on each other: for each two of them, the mean distance over epochs is at
// most 3 % of the extent of all curves. On a logarithmic axis, both are logarithms. Ranks do not count.
bool lie_on_each_other(const Lines& lines);

std::vector<int> counts_of(const std::vector<Series>& series);  // the seeds of each point

// What a mean and its interval are, in plain words. `counts`: seeds of the means. `what`: name of the drawn
// intervals.
std::string intervals_text(const std::vector<int>& counts,
                           const std::string& what = "A band or a vertical bar");

// "%", "s", "log scale"; empty if the metric has no unit.
std::string unit_of(const Metric& metric, bool log_scale);

// One row per epoch and three columns per series, as page.js needs them for the crosshair.
Table epochs_table(const std::vector<Series>& series);

}  // namespace trainyard::reports
