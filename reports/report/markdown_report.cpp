#include "reports/report/markdown_report.h"

#include "reports/content/paper_tables.h"
#include "reports/format/table_text.h"

namespace trainyard::reports {

namespace {

const char* sign_of(Bearing bearing) {
  return bearing == Bearing::fair ? "✓ " : bearing == Bearing::unfair ? "✗ " : "";
}

std::string opening(const Content& content) {
  std::string text = "# " + markdown_escaped(content.data->experiment) + "\n\n";
  for (const auto& [name, value] : content.provenance)
    text += "- **" + markdown_escaped(name) + "**: " + markdown_escaped(value) + "\n";
  text += "\n## What makes this comparison fair, and what does not\n\n";
  for (const Statement& statement : content.fairness)
    text += std::string("- ") + sign_of(statement.bearing) + markdown_escaped(statement.text) + "\n";
  return text;
}

std::string expected_text(const Content& content) {
  if (content.expectations.empty()) return "";
  std::string text = "\n## What the file expects\n\n";
  for (const CheckedExpectation& checked : content.expectations) {
    text += "- " + markdown_escaped(experiments::to_text(checked.expectation) + ": " + outcome_of(checked)) +
            "\n";
    for (const std::string& line : checked.missed) text += "  - " + markdown_escaped(line) + "\n";
  }
  return text;
}

std::string figure_text(const Figure& figure, const char* extension) {
  if (!figure.missing.empty()) return "";
  const std::string title = markdown_escaped(whole_title(figure, ": "));
  return "![" + title + "](figures/" + figure.slug + "." + extension + ")\n\n" + title + ". " +
         markdown_escaped(figure.caption) + "\n\n";
}

}  // namespace

std::string markdown_report(const Content& content, const std::set<std::string>& formats) {
  std::string text = opening(content);
  if (!content.breakdown.remarks.empty()) text += "\n## Where the time goes\n\n";
  for (const std::string& remark : content.breakdown.remarks) text += "- " + markdown_escaped(remark) + "\n";
  text += expected_text(content) + "\n## Verdicts\n\n";
  for (const Comparison& comparison : content.comparisons)
    if (!has_verdicts(comparison)) text += markdown_escaped(no_verdicts_text(comparison)) + "\n\n";
  for (const PaperTable& paper : paper_tables(content))
    text += markdown_escaped(paper.caption) + "\n\n" + markdown_table(paper.table) + "\n";
  const char* extension = formats.count("svg") != 0 ? "svg" : formats.count("png") != 0 ? "png" : nullptr;
  if (extension == nullptr) return text;
  text += "## Figures\n\n";
  for (const Figure* figure : all_figures(content)) text += figure_text(*figure, extension);
  return text;
}

}  // namespace trainyard::reports
