// Converts SVG to PNG and PDF with librsvg and cairo. The same SVG gives the same bytes if the versions of
// both libraries and of the font DejaVu Sans are the same.
#pragma once

#include <string>

namespace trainyard::reports {

// Whether this build can use librsvg and cairo, and this machine has them and a font. If not, the functions below throw
// UserError.
bool can_write_pictures();

// The bytes of a PNG of `svg` at `scale` pixels per unit. InternalError if `svg` is not SVG.
std::string png_of(const std::string& svg, double scale = 2);

// The bytes of a PDF of one page with 96 units per inch and the creation date `created` (ISO 8601).
std::string pdf_of(const std::string& svg, const std::string& created, const std::string& title);

}  // namespace trainyard::reports
