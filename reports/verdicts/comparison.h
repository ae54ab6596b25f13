// All verdicts of one `[[compare]]`.
#pragma once

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

}  // namespace trainyard::reports
