// The report as one self-contained HTML page. It makes no requests, works without scripts and can be printed.
// The same data gives the same bytes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "reports/content/content.h"
#include "reports/format/markup.h"

namespace trainyard::reports {

// `formats`: the figure files in figures/ that the page links to ("svg", "png").
std::string page_html(const Content& content, const std::set<std::string>& formats = {});

// Sections, in the order of the page. A section without content is empty.
Markup page_top(const Content& content);  // the first screen: the answer
Markup page_navigation(const Content& content);
Markup page_verdicts(const Comparison& comparison, const Palette& palette, bool first);
Markup page_task_metrics(const Comparison& comparison, const Palette& palette);
Markup page_results(const Content& content);
Markup page_expectations(const Content& content);
Markup page_panels(const CellFigures& figures, const std::set<std::string>& formats);
Markup page_figures(const std::string& id, const std::string& title, const std::vector<Figure>& figures,
                    const std::set<std::string>& formats);
Markup page_effects(const std::vector<Figure>& effects, const std::set<std::string>& formats);
Markup page_breakdown(const Figure& breakdown, const std::set<std::string>& formats);
Markup page_runs(const Content& content);
Markup page_provenance(const Content& content);

// Line samples for legends: colour and dash as in the figures.
Markup series_sample(const Series& series);
Markup guide_sample(const std::string& colour);

}  // namespace trainyard::reports
