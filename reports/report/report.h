// Writes a report from the database: one self-contained HTML page, and figures and tables for papers and for
// further analysis.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reports/content/content.h"
#include "reports/format/figure_size.h"

namespace trainyard::reports {

// A value of `--format`.
struct Format {
  std::string name;      // "html"
  std::string files;     // the files it writes: "index.html, the page"
  bool picture = false;  // a picture of each figure: it has the size of `--width`
  std::string (*figure_bytes)(const Figure&, const Content&,
                              const FigureSize&) = nullptr;  // null: not per figure
};
std::span<const Format> report_formats();
std::set<std::string> usual_formats();  // without those that cannot be written here

// Returns the written files, the page first. The same database gives the same bytes on any machine. For PNG
// and PDF the versions of librsvg, cairo and the font DejaVu Sans must be the same too.
// - `size`: of the pictures in figures/. Without title and caption in them, each figure has both in a text file.
// - `ranks`: the pictures have the curves of single ranks too. CSV files always have them.
std::vector<std::filesystem::path> write_report(const Content& content, const std::filesystem::path& folder,
                                                const std::set<std::string>& formats = usual_formats(),
                                                const FigureSize& size = {}, bool ranks = false);

// "mlp: test_accuracy >= 0.9"; in a report of several experiments "first: mlp: test_accuracy >= 0.9".
std::string text_of(const CheckedExpectation& checked);

// "✓ all as expected", "✗ missed by 1 of 5", "no finished run".
std::string outcome_of(const CheckedExpectation& checked);

// One line per finished run of the latest plan that misses an expectation of the experiment file.
std::vector<std::string> missed_expectations(const std::vector<CheckedExpectation>& expectations);

// The report as one Markdown document: provenance, fairness, verdicts and links to the figures.
// `formats`: the figure files in figures/, and `size`: theirs. SVG is linked if it is there, else PNG.
std::string markdown_report(const Content& content, const std::set<std::string>& formats,
                            const FigureSize& size = {});

// The verdicts as plain text: one row per cell, arm and metric, then one row per model and arm, then the
// warnings. `width`: columns of the terminal. 0, for files and pipes: no line is wrapped. No text is ever
// cut.
std::string terminal_table(const Content& content, std::size_t width = 0);

}  // namespace trainyard::reports
