#include "reports/verdicts/comparison.h"

#include <algorithm>

namespace trainyard::reports {

bool has_verdicts(const Comparison& comparison) {
  return std::ranges::any_of(comparison.cells,
                             [](const CellVerdicts& judged) { return !judged.verdicts.empty(); });
}

std::string no_verdicts_text(const Comparison& comparison) {
  return "No verdicts: no arm of " + comparison.compare.axis + " stands beside " +
         baseline_text(comparison.compare) + ".";
}

}  // namespace trainyard::reports
