// LaTeX tables and figures: properties that hold in any document, and documents that users write: articles in
// one and two columns, and a page of a thesis. They must compile without a warning about their layout.
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

#include <doctest/doctest.h>

#include "reports/content/content.h"
#include "reports/content/paper_tables.h"
#include "reports/format/table.h"
#include "reports/report/report.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"
#include "tests/support/needed_programs.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::reports {
namespace {

constexpr double article_width = 360;  // in points: \textwidth of an 11 pt A4 article

// The width of the figures of the thesis page. They are drawn to it, as docs/results-and-sql.md says.
constexpr const char* figure_width = "7cm";

// Two comparisons with wide numbers. One arm failed, and one is NOT COMPARABLE.
ReportData wide_numbers() {
  ReportData data = invented({.models = {"mlp", "conv-autoencoder", "seq2seq"},
                              .strategies = {"single", "ddp", "mp-ddp"},
                              .seeds = 3});
  data.plan.compare.push_back(data.plan.compare.front());
  data.plan.compare.back().baseline = "ddp";
  for (int seed = 0; seed < 3; ++seed) {
    final_of(data, "mlp", "ddp", seed)["train_loss"] = 12.5 + 3 * seed;  // thousands of percent
    final_of(data, "mlp", "ddp", seed)["test_loss"] = 0.0001;
    final_of(data, "mlp", "single", seed)["test_loss"] = 0.0002 + 0.00001 * seed;
    set_status(data, "seq2seq", "ddp", seed, "failed");
  }
  for (db::RunSummary& run : data.runs)
    run.axes["global_batch"] = std::int64_t{run.strategy == "mp-ddp" ? 256 : 128};
  return data;
}

// Six models with three arms each, as in the published study.
ReportData six_models() {
  return invented({.models = {"mlp", "cnn", "vgg11", "conv-autoencoder", "nbow", "seq2seq"},
                   .strategies = {"single", "ddp", "mp-ddp"}});
}

std::vector<PaperTable> papers_of(const Content& content) {
  std::vector<PaperTable> papers = content.tables;
  papers.insert(papers.begin(), content.results.table);
  return papers;
}

std::size_t times_in(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

bool has_latex() {
  return tests::is_installed("LaTeX", "pdflatex --version && kpsewhich IEEEtran.cls booktabs.sty ptmr7t.tfm");
}

// Compiles `text` until references are resolved. The log must not complain about boxes, floats or labels. With
// TRAINYARD_SCREENSHOTS=DIR the PDF is kept there.
void check_compiles(const std::filesystem::path& folder, const std::string& name, const std::string& text) {
  CAPTURE(name);
  tests::write_text(folder / (name + ".tex"), text);
  const std::string command = "cd '" + folder.string() +
                              "' && for time in 1 2 3; do pdflatex -interaction=nonstopmode -halt-on-error " +
                              name + ".tex > log.txt 2>&1 < /dev/null || exit 1; done";
  const int code = std::system(command.c_str());
  const std::string log = tests::read_text(folder / "log.txt");
  CHECK_MESSAGE(code == 0, log);
  for (const char* complaint :
       {"Overfull", "multiply defined", "undefined", "Float too large", "LaTeX Error"})
    CHECK_MESSAGE(!contains(log, complaint), log);
  if (const char* kept = std::getenv("TRAINYARD_SCREENSHOTS"); kept != nullptr && code == 0)
    std::filesystem::copy_file(folder / (name + ".pdf"), std::filesystem::path(kept) / (name + ".pdf"),
                               std::filesystem::copy_options::overwrite_existing);
}

// A document with all tables. In two columns, the long ones are in an appendix of one column.
std::string document(const Content& content, const std::string& head, bool two_columns) {
  std::string text =
      head + "\\usepackage{array,booktabs,longtable}\n\\begin{document}\nSee Table~\\ref{tab:results}.\n";
  std::string appendix = "\\clearpage\\onecolumn\n";
  for (const PaperTable& paper : papers_of(content)) {
    const auto files = latex_files(paper);
    REQUIRE(files.size() == (paper.long_table ? 1 : 2));
    (paper.long_table ? appendix : text) += files[two_columns ? files.size() - 1 : 0].second + "\n";
  }
  return text + appendix + "\\end{document}\n";
}

TEST_CASE("each LaTeX label is defined once, before the table head that every page repeats") {
  const ReportData data = wide_numbers();
  const Content content = compose(data);
  std::set<std::string> labels;
  for (const PaperTable& paper : papers_of(content)) {
    for (const auto& [name, text] : latex_files(paper)) {
      CAPTURE(name);
      REQUIRE(times_in("\\label{", text) == 1);
      const std::size_t at = text.find("\\label{");
      labels.insert(text.substr(at, text.find('}', at) - at));
      if (contains(text, "longtable}")) CHECK(at < text.find("\\endfirsthead"));
    }
  }
  CHECK(labels.size() == 5);  // a document uses one file of each table
}

TEST_CASE("columns of a long LaTeX table wrap their text and fit an article") {
  const ReportData data = wide_numbers();
  const Content content = compose(data);
  for (const PaperTable& paper : papers_of(content)) {
    if (!paper.long_table) continue;
    double parts = 0;
    std::size_t columns = 0;
    const std::regex width(R"(p\{([0-9.]+)\\linewidth\})");
    const std::string text = latex_files(paper).front().second;
    const std::string head = text.substr(0, text.find("\\caption"));
    for (auto at = std::sregex_iterator(head.begin(), head.end(), width); at != std::sregex_iterator();
         ++at, ++columns)
      parts += std::stod((*at)[1]);
    CHECK(columns == paper.table.columns.size());  // every column has a fixed width
    CHECK(parts * article_width + 2 * 1.5 * static_cast<double>(columns - 1) <= article_width);
  }
}

TEST_CASE("tables compile without an overfull box in an article, in IEEEtran and in two columns") {
  if (!has_latex()) return;
  const tests::ScratchFolder folder;
  for (const bool six : {false, true}) {
    const ReportData data = six ? six_models() : wide_numbers();
    const Content content = compose(data);
    const std::string name = six ? "six-" : "wide-";
    check_compiles(folder.path(), name + "article",
                   document(content, "\\documentclass[11pt,a4paper]{article}\n", false));
    check_compiles(folder.path(), name + "ieee",
                   document(content, "\\documentclass[conference]{IEEEtran}\n", true));
    check_compiles(folder.path(), name + "two-column",
                   document(content, "\\documentclass[11pt,a4paper,twocolumn]{article}\n", true));
  }
}

TEST_CASE("a page of a thesis compiles: two figures side by side, the results and the verdicts") {
  if (!has_latex()) return;
  const tests::ScratchFolder folder;
  const ReportData data = invented({.models = {"mlp", "cnn"}, .strategies = {"single", "ddp", "mp-ddp"}});
  write_report(compose(data), folder / "report", {"pdf", "latex"}, figure_size(figure_width, "", {}, false));
  const std::string page = R"tex(\documentclass[11pt,a4paper]{report}
\usepackage[margin=2.5cm]{geometry}
\usepackage{array,booktabs,graphicx,longtable}
\graphicspath{{report/figures/}}
\begin{document}
\chapter{Results}
Figure~\ref{fig:mlp} shows the MLP. Tables~\ref{tab:results} and~\ref{tab:verdicts} have the numbers.
\begin{figure}[h]
\includegraphics{mlp-validation-accuracy}\hfill
\includegraphics{speed-up}
\caption{Validation accuracy and speed-up of the MLP.}\label{fig:mlp}
\end{figure}
\input{report/tables/results}
\input{report/tables/verdicts}
\end{document}
)tex";
  check_compiles(folder.path(), "thesis", page);
  // The figures have this width without scaling. TeX prints the size of a box in points.
  const std::string probe = R"tex(\documentclass{article}
\usepackage{graphicx}
\begin{document}
\sbox0{\includegraphics{report/figures/mlp-validation-accuracy}}\typeout{width=\the\wd0}x
\end{document}
)tex";
  check_compiles(folder.path(), "width", probe);
  const std::string log = tests::read_text(folder / "width.log");
  std::smatch found;
  REQUIRE(std::regex_search(log, found, std::regex(R"(width=([0-9.]+)pt)")));
  CHECK(std::stod(found[1]) == doctest::Approx(7 / 2.54 * latex_points_per_inch).epsilon(0.001));
}

}  // namespace
}  // namespace trainyard::reports
