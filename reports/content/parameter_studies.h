// Studies of numeric axes: final metrics and time per epoch over learning rate, batch, threads …
#pragma once

#include <string>
#include <vector>

#include "reports/content/curves.h"
#include "reports/document/report.h"
#include "reports/format/figure.h"

namespace trainyard::reports {

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

}  // namespace trainyard::reports
