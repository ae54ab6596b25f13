#include "reports/report/report.h"

#include <fmt/format.h>

#include "base/disk_failure.h"
#include "base/error.h"
#include "base/plain_file.h"
#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/answer/verdict_text.h"
#include "reports/answer/why.h"
#include "reports/content/content.h"
#include "reports/content/paper_tables.h"
#include "reports/document/report_json.h"
#include "reports/draw/image.h"
#include "reports/draw/svg.h"
#include "reports/format/aligned_text.h"
#include "reports/format/table.h"
#include "reports/report/page.h"

namespace trainyard::reports {

namespace {

// Replaces a symbolic link at `path`, not its target.
void write_file(const std::filesystem::path& path, const std::string& bytes) {
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path))) std::filesystem::remove(path);
  const std::string what = "cannot write " + path.string();
  PlainFileWriter file(path);
  if (!file) throw UserError(what + ": " + file.problem(), "remove it, or write elsewhere with --out");
  file << bytes;
  file.close();
  if (!file) throw_incomplete(what, "free disk space, or write elsewhere with --out");
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UserError(fmt::format("cannot create {}: {}", folder.string(), error.message()));
}

void refuse_link(const std::filesystem::path& folder) {
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(folder)))
    throw UserError(folder.string() + " is a link", "move it away, or write the report elsewhere with --out");
}

constexpr double screen_scale = 2;                    // pixels per unit of a PNG
constexpr double print_scale = 300 / units_per_inch;  // of a PNG with a size on paper

std::string svg_bytes(const Figure& figure, const Content&, const FigureSize& size) {
  return svg_document(figure, size);
}

std::string png_bytes(const Figure& figure, const Content&, const FigureSize& size) {
  return png_of(svg_document(figure, size), size.sized() ? print_scale : screen_scale);
}

std::string pdf_bytes(const Figure& figure, const Content& content, const FigureSize& size) {
  return pdf_of(svg_document(figure, size), content.report->date, whole_title(figure, " "));
}

std::string csv_bytes(const Figure& figure, const Content&, const FigureSize&) {
  return csv_table(figure.data);
}

// Writes files below one folder and keeps a list of them.
class Writer {
 public:
  explicit Writer(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void write(const std::filesystem::path& file, const std::string& bytes) {
    const std::filesystem::path path = folder_ / file;
    if (file.has_parent_path()) refuse_link(path.parent_path());
    make_folder(path.parent_path());
    write_file(path, bytes);
    written_.push_back(path);
  }
  const std::vector<std::filesystem::path>& written() const { return written_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> written_;
};

void write_tables(Writer& writer, const Content& content, const std::set<std::string>& formats) {
  if (formats.count("latex") != 0) {
    std::vector<PaperTable> papers = content.tables;
    papers.insert(papers.begin(), content.results.table);
    for (const PaperTable& paper : papers)
      for (const auto& [name, text] : latex_files(paper)) writer.write("tables/" + name + ".tex", text);
  }
  if (formats.count("csv") == 0) return;
  writer.write("tables/results.csv", csv_table(content.results.numbers));
  writer.write("tables/verdicts.csv", csv_table(verdict_numbers(content.report->comparisons)));
  writer.write("tables/runs.csv", csv_table(run_numbers(*content.report)));
  if (const Table ranks = rank_costs(*content.report); !ranks.rows.empty())
    writer.write("tables/ranks.csv", csv_table(ranks));
  if (!content.report->published_numbers.empty())
    writer.write("tables/published-numbers.csv", csv_table(published_numbers_in_full(*content.report)));
}

}  // namespace

std::set<std::string> usual_formats() {
  std::set<std::string> formats{"html", "json", "svg"};
  if (can_write_pictures()) formats.insert("png");
  return formats;
}

std::span<const Format> report_formats() {
  static const std::vector<Format> formats{
      {"html", "index.html, the page"},
      {"json", "report.json: the whole report for other programs and for --from"},
      {"svg", "figures/*.svg", true, svg_bytes},
      {"png", "figures/*.png", true, png_bytes},
      {"pdf", "figures/*.pdf", true, pdf_bytes},
      {"csv", "figures/*.csv, tables/*.csv: the data of figures, results, verdicts and runs", false,
       csv_bytes},
      {"latex", "tables/*.tex: booktabs tables of results and verdicts"},
      {"markdown", "report.md"}};
  return formats;
}

std::vector<std::filesystem::path> write_report(const Content& content, const std::filesystem::path& folder,
                                                const std::set<std::string>& formats, const FigureSize& size,
                                                bool ranks) {
  Writer writer(folder);
  if (formats.count("html") != 0) writer.write("index.html", page_html(content, formats));
  if (formats.count("json") != 0) writer.write("report.json", report_json(*content.report));
  if (formats.count("markdown") != 0) writer.write("report.md", markdown_report(content, formats, size));
  write_tables(writer, content, formats);
  for (const Figure* figure : all_figures(content)) {
    if (!figure->missing.empty()) continue;
    const Figure drawn = ranks ? *figure : without_ranks(*figure);
    for (const Format& format : report_formats())
      if (format.figure_bytes != nullptr && formats.count(format.name) != 0)
        writer.write(fmt::format("figures/{}.{}", figure->slug, format.name),
                     format.figure_bytes(drawn, content, size));
    if (!size.title)
      writer.write(fmt::format("figures/{}.txt", figure->slug),
                   whole_title(*figure, ": ") + "\n\n" + caption_of(*figure, size) + "\n");
  }
  return writer.written();
}

std::string text_of(const CheckedExpectation& checked) {
  return (checked.experiment.empty() ? "" : checked.experiment + ": ") +
         experiments::to_text(checked.expectation);
}

std::string outcome_of(const CheckedExpectation& checked) {
  if (checked.values.empty()) return "no finished run";
  if (checked.holds()) return "✓ all as expected";
  return fmt::format("✗ missed by {} of {}", checked.missed.size(), checked.values.size());
}

std::vector<std::string> missed_expectations(const std::vector<CheckedExpectation>& expectations) {
  std::vector<std::string> lines;
  for (const CheckedExpectation& checked : expectations)
    for (const std::string& run : checked.missed)
      lines.push_back(fmt::format("{}, expected of {}", run, text_of(checked)));
  return lines;
}

namespace {

const char* sign_of(Severity severity) {
  return severity == Severity::fair ? "✓ " : severity == Severity::unfair ? "✗ " : "";
}

std::string opening(const Content& content) {
  std::string text = "# " + markdown_escaped(content.report->name) + "\n\n";
  for (const std::vector<std::string>& paragraphs : content.answer.paragraphs)
    for (const std::string& paragraph : paragraphs) text += markdown_escaped(paragraph) + "\n\n";
  for (const std::string& published : content.answer.published)
    text += "- **Published study**: " + markdown_escaped(published) + "\n";
  text += "- **Compared**: " + markdown_escaped(content.answer.compared) + "\n";
  text += "- **Machine**: " + markdown_escaped(content.answer.machine) + "\n";
  text += "\n## Is this comparison fair?\n\n";
  for (const Severity severity : {Severity::unfair, Severity::note, Severity::fair})
    for (const Statement& statement : content.report->fairness)
      if (statement.severity == severity)
        text += fmt::format("- {}{}\n", sign_of(severity), markdown_escaped(statement.text));
  return text;
}

std::string closing(const Content& content) {
  std::string text = "\n## Settings of the runs\n\n" + markdown_table(settings_table(*content.report)) +
                     "\n## Provenance\n\n";
  for (const auto& [name, value] : content.report->provenance)
    text += fmt::format("- **{}**: {}\n", markdown_escaped(name), markdown_escaped(value));
  return text;
}

std::string expected_text(const Content& content) {
  if (content.report->expectations.empty()) return "";
  std::string text = "\n## Expectations of the experiment file\n\n";
  for (const CheckedExpectation& checked : content.report->expectations) {
    text += "- " + markdown_escaped(text_of(checked) + ": " + outcome_of(checked)) + "\n";
    for (const std::string& line : checked.missed) text += "  - " + markdown_escaped(line) + "\n";
  }
  return text;
}

std::string why_section(const std::vector<Comparison>& comparisons) {
  std::string text;
  for (const Comparison& comparison : comparisons)
    for (const Why& why : whys(comparison)) {
      if (why.is_silent()) continue;
      text += fmt::format("- {} against {}\n", markdown_escaped(why.arm), markdown_escaped(why.baseline));
      for (const std::string& line : lines_of(why)) text += fmt::format("  - {}\n", markdown_escaped(line));
    }
  return text.empty() ? "" : "### Why\n\n" + text + "\n";
}

std::string figure_text(const Figure& figure, const char* extension, const FigureSize& size) {
  if (!figure.missing.empty()) return "";
  const std::string title = markdown_escaped(whole_title(figure, ": "));
  return fmt::format("![{}](figures/{}.{})\n\n{}. {}\n\n", title, figure.slug, extension, title,
                     markdown_escaped(caption_of(figure, size)));
}

std::string verdict_lines(const Comparison& comparison, std::size_t width) {
  Table table;
  table.columns = {"model",          comparison.compare.axis, "metric",
                   "verdict",        right_column("effect"),  right_column("95 % interval"),
                   right_column("n")};
  for (const Cell& cell : comparison.cells) {
    for (const Verdict& verdict : cell.verdicts) {
      table.rows.push_back({cell.label, verdict.arm, phase_and_metric(verdict),
                            text_of(verdict.kind) + marks_text(verdict.caveats), effect_text(verdict),
                            interval_text(verdict), verdict.n});
    }
  }
  return aligned_table(table, width);
}

}  // namespace

std::string markdown_report(const Content& content, const std::set<std::string>& formats,
                            const FigureSize& size) {
  std::string text = opening(content);
  if (!content.breakdown.remarks.empty()) text += "\n## Where the time goes\n\n";
  for (const std::string& remark : content.breakdown.remarks) text += "- " + markdown_escaped(remark) + "\n";
  text += expected_text(content) + "\n## Results\n\n" +
          markdown_escaped(content.results.table.table.caption) + "\n\n" +
          markdown_table(content.results.table.table) + "\n## Verdicts\n\n";
  for (const Comparison& comparison : content.report->comparisons)
    if (!has_verdicts(comparison)) text += markdown_escaped(no_verdicts_text(comparison)) + "\n\n";
  text += why_section(content.report->comparisons);
  for (const PaperTable& paper : content.tables)
    text += fmt::format("{}\n\n{}\n", markdown_escaped(paper.table.caption), markdown_table(paper.table));
  if (const Table ranks = rank_costs(*content.report); !ranks.rows.empty())
    text += fmt::format("## What ranks send and hold\n\n{}\n\n{}\n", markdown_escaped(ranks.caption),
                        markdown_table(ranks));
  const char* extension = formats.count("svg") != 0 ? "svg" : formats.count("png") != 0 ? "png" : nullptr;
  if (extension != nullptr) {
    text += "## Figures\n\n";
    for (const Figure* figure : all_figures(content)) text += figure_text(*figure, extension, size);
  }
  return text + closing(content);
}

std::string terminal_table(const Content& content, std::size_t width) {
  std::vector<std::string> blocks;
  for (std::size_t i = 0; i < content.report->comparisons.size(); ++i)
    if (has_verdicts(content.report->comparisons[i]))
      blocks.push_back(paragraph(joined(content.answer.paragraphs.at(i), {}, " "), width));
  std::string facts;
  for (const std::string& fact : answer_facts(content.answer)) facts += paragraph(fact, width);
  blocks.push_back(facts);
  for (const Comparison& comparison : content.report->comparisons) {
    if (has_verdicts(comparison)) {
      blocks.push_back(paragraph(heading(comparison), width) + "\n" + verdict_lines(comparison, width));
    } else {
      blocks.push_back(paragraph(no_verdicts_text(comparison), width));
    }
  }
  if (const std::string why = why_text(content.report->comparisons, width); !why.empty())
    blocks.push_back("Why\n" + why);
  if (std::string numbers = published_numbers_text(*content.report, width); !numbers.empty())
    blocks.push_back(std::move(numbers));
  std::string warnings;
  for (const Statement& statement : content.report->fairness)
    if (statement.severity == Severity::unfair) warnings += paragraph("warning: " + statement.text, width);
  if (!warnings.empty()) blocks.push_back(warnings);
  return joined(blocks, {}, "\n");
}

}  // namespace trainyard::reports
