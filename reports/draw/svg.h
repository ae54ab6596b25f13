// Draws a Figure as SVG without a browser. The picture is the same on the page and in a file.
#pragma once

#include <string>

#include "reports/format/figure.h"
#include "reports/format/figure_size.h"
#include "reports/format/markup.h"

namespace trainyard::reports {

// The <svg> element for the page. Colours come from the page's style sheet. Lines over epochs have the
// attributes data-x0, data-dx and data-first for the crosshair. Empty if `missing` is set.
Markup page_svg(const Figure& figure);

// Whether the figure needs the width of the page, not only that of a panel.
bool is_wide(const Figure& figure);

// A complete SVG document with title, legend, caption, background and the light colours of the page. If `size`
// has a width, the document is that wide, and it is laid out for it. Without title and caption a line
// above the drawing names the values and their unit.
std::string svg_document(const Figure& figure, const FigureSize& size = {});

// The caption for a figure of this size. A narrow figure has no final values at the right.
std::string caption_of(const Figure& figure, const FigureSize& size = {});

// Class of a series: colour role and dash.
std::string series_class(const Series& series);

}  // namespace trainyard::reports
