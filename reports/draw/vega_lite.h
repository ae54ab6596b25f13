// A figure as a Vega-Lite 5 specification with its data. To restyle it, paste it into
// https://vega.github.io/editor.
#pragma once

#include <string>

#include "reports/format/figure.h"

namespace trainyard::reports {

// JSON; numbers have at most six significant digits. InternalError if `missing` is set.
std::string vega_lite(const Figure& figure);

}  // namespace trainyard::reports
