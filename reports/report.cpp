#include "reports/report.h"

#include <fstream>

#include "models/error.h"
#include "reports/content.h"
#include "reports/page.h"
#include "reports/png.h"
#include "reports/report_data.h"
#include "reports/svg.h"
#include "reports/terminal_table.h"

namespace trainyard::reports {

namespace {

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (!file) throw UserError("cannot write " + path.string(), "is the folder writable, is the disk full?");
}

std::filesystem::path make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UserError("cannot create " + folder.string() + ": " + error.message());
  return folder;
}

class FigureWriter {
 public:
  FigureWriter(std::filesystem::path folder, const std::set<std::string>& formats)
      : folder_(std::move(folder)), formats_(formats) {}

  void write(const Figure& figure, std::vector<std::filesystem::path>& written) const {
    if (!figure.missing.empty()) return;
    const std::string svg = svg_document(figure);
    if (formats_.count("svg") != 0) {
      written.push_back(folder_ / (figure.slug + ".svg"));
      write_file(written.back(), svg);
    }
    if (formats_.count("png") != 0) {
      written.push_back(folder_ / (figure.slug + ".png"));
      write_file(written.back(), png_of(svg));
    }
  }

 private:
  std::filesystem::path folder_;
  const std::set<std::string>& formats_;
};

}  // namespace

std::vector<std::filesystem::path> write_report(const db::Database& database, const std::string& experiment,
                                                const std::filesystem::path& folder,
                                                const std::set<std::string>& formats) {
  const ReportData data = gather(database, experiment);
  const Content content = compose(data);
  std::set<std::string> files = formats;
  files.erase("html");
  std::vector<std::filesystem::path> written;
  make_folder(folder);
  if (formats.count("html") != 0) {
    written.push_back(folder / "index.html");
    write_file(written.back(), page_html(content, files));
  }
  if (files.empty()) return written;
  const FigureWriter writer(make_folder(folder / "figures"), files);
  for (const CellFigures& figures : content.figures) {
    for (const Figure& figure : figures.panels) writer.write(figure, written);
  }
  writer.write(content.breakdown, written);
  return written;
}

std::vector<std::string> missed_expectations(const db::Database& database, const std::string& experiment) {
  std::vector<std::string> lines;
  for (const CheckedExpectation& checked : check_expectations(gather(database, experiment)))
    for (const std::string& run : checked.missed)
      lines.push_back(run + "; expected of " + experiments::to_text(checked.expectation));
  return lines;
}

std::string verdict_table_text(const db::Database& database, const std::string& experiment) {
  const ReportData data = gather(database, experiment);
  return terminal_table(compose(data));
}

}  // namespace trainyard::reports
