// All effects of a comparison with their intervals and margins, as forest plots of a few metrics each.
#pragma once

#include <vector>

#include "reports/content.h"
#include "reports/figure.h"

namespace trainyard::reports {

// The published metrics first, those of single tasks last, each task apart; metrics on which no verdict has
// an estimate are left out, and in a figure the rows without any.
std::vector<Figure> make_effects(const Comparison& comparison, const Palette& palette);

}  // namespace trainyard::reports
