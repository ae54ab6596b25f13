// SVG to PNG and PDF through librsvg and cairo, for people who paste figures into documents. The same SVG
// gives the same bytes with the same versions of both libraries and of the font, DejaVu Sans.
#pragma once

#include <string>

namespace trainyard::reports {

// Whether this build has what both take; else they throw UserError.
bool writes_pictures();

// The bytes of a PNG of `svg` at `scale` pixels per unit. InternalError where it is no SVG.
std::string png_of(const std::string& svg, double scale = 2);

// The bytes of a PDF of one page, 96 units an inch, said to be made at `created` (ISO 8601).
std::string pdf_of(const std::string& svg, const std::string& created, const std::string& title);

}  // namespace trainyard::reports
