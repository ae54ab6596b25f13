// Draws a Figure as SVG, with a pen of its own and no browser: the same picture on the page and in a file.
#pragma once

#include <string>

#include "reports/format/figure.h"
#include "reports/format/markup.h"

namespace trainyard::reports {

// The <svg> element for the page: classes only, colours come from the page's style sheet. Lines over epochs
// carry what the crosshair needs (data-x0, data-dx, data-first). Nothing where `missing` is set: the page
// says so in words.
Markup page_svg(const Figure& figure);

// A document that stands alone: title, legend, caption, background and its own colours (the light ones of the
// page).
std::string svg_document(const Figure& figure);

// Class of a series: colour role and dash.
std::string series_class(const Series& series);

}  // namespace trainyard::reports
