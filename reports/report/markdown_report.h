// The report as one Markdown document: provenance, fairness, verdicts and the figures that lie beside it.
#pragma once

#include <set>
#include <string>

#include "reports/content/content.h"

namespace trainyard::reports {

// `formats`: which figure files stand in figures/; they are linked as SVG, else as PNG.
std::string markdown_report(const Content& content, const std::set<std::string>& formats);

}  // namespace trainyard::reports
