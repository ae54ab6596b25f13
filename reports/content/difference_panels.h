// Differences from the baseline by epoch, beside curves that lie on each other.
#pragma once

#include <optional>

#include "reports/content/curves.h"
#include "reports/format/figure.h"

namespace trainyard::reports {

// Whether the curves of the arms lie on each other: for each two of them, the mean distance over epochs is at
// most 3 % of the extent of all curves. On a logarithmic axis, both are logarithms. Ranks do not count.
bool lie_on_each_other(const Lines& lines);

// Mean difference from the baseline at each epoch, with its interval and the margin, on the scale of the
// verdict. Empty if the curves of `panel` do not lie on each other, or without pairs or a verdict.
std::optional<Figure> make_difference(const Figure& panel, const Cell& cell, const Metric& metric,
                                      const Palette& palette);

}  // namespace trainyard::reports
