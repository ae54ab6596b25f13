// SVG to PNG through librsvg and cairo, for people who paste figures into documents.
#pragma once

#include <string>

namespace trainyard::reports {

// The bytes of a PNG of `svg_document` at `scale` pixels per unit. InternalError where it is no SVG.
std::string png_of(const std::string& svg, double scale = 2);

}  // namespace trainyard::reports
