// A report from the database alone: one self-contained HTML page, its figures and tables in the formats of
// papers and of people who go on with the numbers.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reports/content/content.h"

namespace trainyard::reports {

// What `--format` knows: name and the files that it makes.
struct Format {
  std::string name;   // "html"
  std::string files;  // "index.html", "figures/*.svg"
};
std::span<const Format> report_formats();
std::set<std::string> usual_formats();  // of those that this build writes

// Returns what was written, the page first. The same database gives the same bytes on any machine; PNG and
// PDF with the same versions of librsvg, cairo and the font DejaVu Sans.
std::vector<std::filesystem::path> write_report(const Content& content, const std::filesystem::path& folder,
                                                const std::set<std::string>& formats = usual_formats());

// One line for each finished run of the latest plan that is not as the experiment's file expects.
std::vector<std::string> missed_expectations(const std::vector<CheckedExpectation>& expectations);

// "CNN ddp: the gradient of layer 0.weight …", one line for each arm that the parity check found BROKEN; also
// if no run has finished an epoch.
std::vector<std::string> broken_arms(const ReportData& data);

// The report as one Markdown document: provenance, fairness, verdicts and the figures that lie beside it.

// `formats`: which figure files stand in figures/; they are linked as SVG, else as PNG.
std::string markdown_report(const Content& content, const std::set<std::string>& formats);

// The verdicts as plain text: one row per cell, arm and metric, then the models by verdict (the published
// shape) and each warning.

// `width`: columns of the terminal; 0, for files and pipes: nothing is wrapped. Nothing is ever cut.
std::string terminal_table(const Content& content, std::size_t width = 0);

}  // namespace trainyard::reports
