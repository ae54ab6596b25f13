// Figures of all models of a report: of their data sets, and of the time of their epochs and steps.
#pragma once

#include <vector>

#include "reports/document/report.h"
#include "reports/format/figure.h"

namespace trainyard::reports {

// Samples per class, and pixel value density per colour channel: up to two figures per data set. Data without classes
// or without images lacks one of them.
std::vector<Figure> make_data_figures(const Report& report);

// Time breakdown of an epoch: stacked bars of each cell's arms, in percent of the baseline's epoch time. `missing` is
// set if no run recorded the parts of its time.
Figure make_time_breakdown(const Report& report);

// Timelines of one training step: a figure per cell whose arms have some, with a row per stage, and per replica if the
// arm has few ranks. The caption says which share of a step each stage waited for its neighbour.
std::vector<Figure> make_timelines(const Report& report);

}  // namespace trainyard::reports
