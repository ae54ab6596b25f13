// The six panels of a cell: accuracies, losses and times by epoch, as figures.
#pragma once

#include <string>
#include <vector>

#include "reports/content/curves.h"
#include "reports/format/figure.h"
#include "reports/results/metrics.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

std::vector<Figure> make_panels(const ReportData& data, const Cell& cell, const Palette& palette);

// Published numbers as marked guides beside our curves and bars, and the sentences that say what they are.

// Of one model and metric, for every arm that a source has; over the epochs of `series`.
std::vector<Guide> published_guides(const ReportData& data, const std::string& model, const Metric& metric,
                                    const std::vector<Series>& series);

// "Dash-dotted: published by …": empty where no guide is.
std::string published_caption(const ReportData& data, const std::vector<Guide>& guides);

// One sentence a source: whose numbers these are, and on what hardware its arms ran.
std::vector<std::string> published_notes(const ReportData& data);

}  // namespace trainyard::reports
