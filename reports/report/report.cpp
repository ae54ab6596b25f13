#include "reports/report/report.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "base/error.h"
#include "reports/content/content.h"
#include "reports/content/paper_tables.h"
#include "reports/draw/image.h"
#include "reports/draw/svg.h"
#include "reports/draw/vega_lite.h"
#include "reports/format/table_text.h"
#include "reports/report/markdown_report.h"
#include "reports/report/page.h"
#include "reports/report/terminal_table.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

namespace {

// What a link in its place points to stays as it is.
void write_file(const std::filesystem::path& path, const std::string& bytes) {
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path))) std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (!file) throw UserError("cannot write " + path.string(), "is the folder writable, is the disk full?");
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UserError("cannot create " + folder.string() + ": " + error.message());
}

void refuse_link(const std::filesystem::path& folder) {
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(folder)))
    throw UserError(folder.string() + " is a link", "move it away, or write the report elsewhere with --out");
}

// What one figure is in one format.
struct FigureFormat {
  const char* name;
  const char* extension;
  std::string (*bytes)(const Figure& figure, const Content& content);
};

constexpr std::array<FigureFormat, 5> figure_formats{{
    {"svg", "svg", [](const Figure& figure, const Content&) { return svg_document(figure); }},
    {"png", "png", [](const Figure& figure, const Content&) { return png_of(svg_document(figure)); }},
    {"pdf", "pdf",
     [](const Figure& figure, const Content& content) {
       return pdf_of(svg_document(figure), last_record_time(*content.data), whole_title(figure, " "));
     }},
    {"csv", "csv", [](const Figure& figure, const Content&) { return csv_text(figure.data); }},
    {"vega-lite", "vl.json", [](const Figure& figure, const Content&) { return vega_lite(figure); }},
}};

// Writes files below one folder and remembers them.
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
    for (const PaperTable& paper : paper_tables(content))
      writer.write(
          "tables/" + paper.slug + ".tex",
          latex_table(paper.table, {paper.columns, paper.caption, "tab:" + paper.slug, paper.long_table}));
  }
  if (formats.count("csv") == 0) return;
  writer.write("tables/verdicts.csv", csv_text(verdict_numbers(content)));
  writer.write("tables/runs.csv", csv_text(run_numbers(content)));
}

}  // namespace

std::set<std::string> usual_formats() {
  std::set<std::string> formats{"html", "svg"};
  if (writes_pictures()) formats.insert("png");
  return formats;
}

std::span<const Format> report_formats() {
  static const std::vector<Format> formats{
      {"html", "index.html, the page"},
      {"svg", "figures/*.svg"},
      {"png", "figures/*.png"},
      {"pdf", "figures/*.pdf"},
      {"csv", "figures/*.csv, tables/verdicts.csv, tables/runs.csv: the numbers"},
      {"vega-lite", "figures/*.vl.json: specifications with their data, to restyle"},
      {"latex", "tables/*.tex: booktabs tables of the verdicts"},
      {"markdown", "report.md"}};
  return formats;
}

std::vector<std::filesystem::path> write_report(const db::Database& database, const std::string& experiment,
                                                const std::filesystem::path& folder,
                                                const std::set<std::string>& formats) {
  const ReportData data = gather(database, experiment);
  return write_report(compose(data), folder, formats);
}

std::vector<std::filesystem::path> write_report(const Content& content, const std::filesystem::path& folder,
                                                const std::set<std::string>& formats) {
  Writer writer(folder);
  if (formats.count("html") != 0) writer.write("index.html", page_html(content, formats));
  if (formats.count("markdown") != 0) writer.write("report.md", markdown_report(content, formats));
  write_tables(writer, content, formats);
  for (const Figure* figure : all_figures(content)) {
    if (!figure->missing.empty()) continue;
    for (const FigureFormat& format : figure_formats) {
      if (formats.count(format.name) != 0)
        writer.write("figures/" + figure->slug + "." + format.extension, format.bytes(*figure, content));
    }
  }
  return writer.written();
}

std::vector<std::string> missed_expectations(const db::Database& database, const std::string& experiment) {
  const ReportData data = gather(database, experiment);
  return missed_expectations(compose(data));
}

std::vector<std::string> missed_expectations(const Content& content) {
  std::vector<std::string> lines;
  for (const CheckedExpectation& checked : content.expectations)
    for (const std::string& run : checked.missed)
      lines.push_back(run + "; expected of " + experiments::to_text(checked.expectation));
  return lines;
}

std::vector<std::string> broken_arms(const db::Database& database, const std::string& experiment) {
  const ReportData data = gather_results(database, experiment);
  std::vector<experiments::Compare> compares = data.plan.compare;
  if (compares.empty()) compares.emplace_back();
  std::vector<std::string> lines;
  for (const experiments::Compare& compare : compares)
    for (const Cell& cell : make_cells(data, compare))
      for (const Arm& arm : cell.arms) {
        const std::string broken = comparability_of(data, compare, cell, arm).broken;
        const std::string line = cell.label + " " + arm.value + ": " + broken;
        if (!broken.empty() && std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
      }
  return lines;
}

std::string verdict_table_text(const db::Database& database, const std::string& experiment) {
  const ReportData data = gather(database, experiment);
  return verdict_table_text(compose(data));
}

std::string verdict_table_text(const Content& content, std::size_t width) {
  return terminal_table(content, width);
}

}  // namespace trainyard::reports
