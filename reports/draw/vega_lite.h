// A figure as a Vega-Lite 5 specification with its data. To restyle it, paste it into
// https://vega.github.io/editor.
#pragma once

#include <string>

#include "reports/format/figure.h"
#include "reports/format/figure_size.h"

namespace trainyard::reports {

// JSON; numbers have at most six significant digits. InternalError if `missing` is set. `size`: fonts, and
// the width of the picture. A figure of several plots has plots of half that width.
std::string vega_lite(const Figure& figure, const FigureSize& size = {});

}  // namespace trainyard::reports
