// Converts SVG to PNG and PDF with librsvg and cairo. The same SVG gives the same bytes if the versions of
// both libraries and of the font DejaVu Sans are the same.
#pragma once

#include <string>

namespace trainyard::reports {

// Whether this build has librsvg and cairo. If not, the functions below throw UserError.
bool writes_pictures();

// The bytes of a PNG of `svg` at `scale` pixels per unit. InternalError if `svg` is not SVG.
std::string png_of(const std::string& svg, double scale = 2);

// The bytes of a PDF of one page with 96 units per inch and the creation date `created` (ISO 8601).
std::string pdf_of(const std::string& svg, const std::string& created, const std::string& title);

}  // namespace trainyard::reports
