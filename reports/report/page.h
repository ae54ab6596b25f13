// The report as one self-contained HTML page. It makes no requests, works without scripts and can be printed.
// The same data gives the same bytes.
#pragma once

#include <set>
#include <string>

#include "reports/content/content.h"
#include "reports/format/markup.h"

namespace trainyard::reports {

// `formats`: the figure files in figures/ that the page links to ("svg", "png").
std::string page_html(const Content& content, const std::set<std::string>& formats = {});

// Sections of other files and tests, in the order of the page.
Markup page_top(const Content& content);  // the first screen: the answer
Markup page_verdicts(const Comparison& comparison, const Palette& palette, bool first);
Markup page_panels(const CellFigures& figures, const std::set<std::string>& formats);
Markup page_provenance(const Content& content);

// A line sample for legends: colour and dash as in the figures.
Markup series_sample(const Series& series);

}  // namespace trainyard::reports
