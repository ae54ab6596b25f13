// A figure as a Vega-Lite 5 specification with its data inside, for people who restyle it: paste it into
// https://vega.github.io/editor.
#pragma once

#include <string>

#include "reports/format/figure.h"

namespace trainyard::reports {

// JSON, numbers with at most six significant digits; not for a figure that is `missing`.
std::string vega_lite(const Figure& figure);

}  // namespace trainyard::reports
