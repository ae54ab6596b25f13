// All effects of a comparison with their intervals and margins, as forest plots of a few metrics each.
#pragma once

#include <string>
#include <vector>

#include "reports/content/curves.h"
#include "reports/format/figure.h"
#include "reports/verdicts/comparison.h"

namespace trainyard::reports {

// The published metrics first, those of single tasks last, each task apart; metrics on which no verdict has
// an estimate are left out, and in a figure the rows without any. Slugs are `slug`, and `slug`-2 …
std::vector<Figure> make_effects(const Comparison& comparison, const Palette& palette,
                                 const std::string& slug);

}  // namespace trainyard::reports
