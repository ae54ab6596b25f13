// Forest plots of all effects of a comparison with intervals and margins, a few metrics per plot.
#pragma once

#include <string>
#include <vector>

#include "reports/content/curves.h"
#include "reports/document/report.h"
#include "reports/format/figure.h"

namespace trainyard::reports {

// Published metrics are first. Task-specific metrics are last, with separate figures per task. Metrics and
// rows without an estimate are left out. Slugs are `slug`, `slug`-2, …
std::vector<Figure> make_effects(const Comparison& comparison, const Palette& palette,
                                 const std::string& slug);

}  // namespace trainyard::reports
