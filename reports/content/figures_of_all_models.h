// Figures of all models of a report: effects, studies of parameters, data sets, and the time of epochs and steps.
#pragma once

#include <string>
#include <vector>

#include "reports/content/curves.h"
#include "reports/document/report.h"
#include "reports/format/figure.h"

namespace trainyard::reports {

// Forest plots of all effects of a comparison with intervals and margins, a few metrics per plot. Published metrics
// are first. Task-specific metrics are last, with separate figures per task. Metrics and rows without an estimate are
// left out. Slugs are `slug`, `slug`-2, …
std::vector<Figure> make_effects(const Report& report, const Comparison& comparison, const Palette& palette,
                                 const std::string& slug);

// A study of a numeric axis: final metrics and time per epoch over learning rate, batch, threads …
struct Study {
  std::string slug;         // anchor: "study-batch"
  std::string short_title;  // "Batch"
  std::string title;        // "Effect of batch (32 and 512 against 128) on MLP"
  std::vector<Figure> figures;
};

// A point is the mean over seeds. An axis is logarithmic if its largest value is more than ten times its
// smallest.
std::vector<Study> make_parameter_studies(const Report& report, const Palette& palette);

// "Effect of threads (2 and 4 against 1) on MLP and CNN". Without a baseline: "Effect of threads (1, 2 and 4)
// on MLP and CNN". More than four models are only counted.
std::string study_title(const std::string& axis, const std::vector<std::string>& values,
                        const std::string& baseline, const std::vector<std::string>& models);

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
