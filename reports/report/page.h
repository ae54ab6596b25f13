// The report as one self-contained HTML page: no request leaves it, it works with scripts off, it prints. The
// same data gives the same bytes.
#pragma once

#include <set>
#include <string>

#include "reports/content/content.h"
#include "reports/format/markup.h"

namespace trainyard::reports {

// `formats`: which figure files stand beside it in figures/ ("svg", "png"), for links.
std::string page_html(const Content& content, const std::set<std::string>& formats = {});

// Sections, in the order of the page.
Markup page_top(const Content& content);
Markup page_navigation(const Content& content);
Markup page_verdicts(const Comparison& comparison, const Palette& palette, bool first);
Markup page_task_metrics(const Comparison& comparison, const Palette& palette);  // empty where none is judged
Markup page_expectations(const Content& content);                                // empty where none is stated
Markup page_panels(const CellFigures& figures, const std::set<std::string>& formats);
Markup page_effects(const Comparison& comparison,
                    const std::set<std::string>& formats);  // empty where there are none
Markup page_breakdown(const Figure& breakdown, const std::set<std::string>& formats);
Markup page_data(const Content& content,
                 const std::set<std::string>& formats);  // empty where nothing is known
Markup page_runs(const Content& content);

// A line sample of a series, for legends: colour and dash as in the figures.
Markup series_sample(const Series& series);
Markup guide_sample(const std::string& colour);

}  // namespace trainyard::reports
