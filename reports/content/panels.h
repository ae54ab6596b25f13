// Panels of a cell: metrics by epoch, validation loss over time, and scaling.
#pragma once

#include <string>
#include <vector>

#include "reports/content/curves.h"
#include "reports/format/figure.h"
#include "reports/results/metrics.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

std::vector<Figure> make_panels(const ReportData& data, const Cell& cell, const Palette& palette);

// Published values of one model and metric as guides beside our curves and bars. One guide per arm and
// source, over the epochs of `series`.
std::vector<Guide> published_guides(const ReportData& data, const std::string& model, const Metric& metric,
                                    const std::vector<Series>& series);

// " Dash-dotted: published values …"; empty if there are no guides.
std::string published_caption(const ReportData& data, const std::vector<Guide>& guides);

}  // namespace trainyard::reports
