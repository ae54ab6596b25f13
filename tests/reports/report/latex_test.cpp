// LaTeX tables: properties that hold in any article, and a compilation if LaTeX is installed.
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
#include "tests/support/scratch_folder.h"

namespace trainyard::reports {
namespace {

constexpr double article_width = 360;  // in points: \textwidth of an 11 pt A4 article

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

std::vector<std::string> tables_of(const Content& content) {
  std::vector<std::string> texts;
  for (const PaperTable& paper : content.tables)
    texts.push_back(latex_table(paper.table, "tab:" + paper.slug, paper.long_table));
  return texts;
}

std::size_t times_in(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("each LaTeX label is defined once, before the table head that every page repeats") {
  const ReportData data = wide_numbers();
  std::set<std::string> labels;
  for (const std::string& text : tables_of(compose(data))) {
    REQUIRE(times_in("\\label{", text) == 1);
    const std::size_t at = text.find("\\label{");
    CHECK(labels.insert(text.substr(at, text.find('}', at) - at)).second);
    if (contains(text, "longtable}")) CHECK(at < text.find("\\endfirsthead"));
  }
  CHECK(labels.size() == 4);
}

TEST_CASE("columns of a long LaTeX table wrap their text and fit an article") {
  const ReportData data = wide_numbers();
  const Content content = compose(data);
  for (const PaperTable& paper : content.tables) {
    if (!paper.long_table) continue;
    double parts = 0;
    std::size_t columns = 0;
    const std::regex width(R"(p\{([0-9.]+)\\linewidth\})");
    const std::string text = latex_table(paper.table, "tab:" + paper.slug, true);
    const std::string head = text.substr(0, text.find("\\caption"));
    for (auto at = std::sregex_iterator(head.begin(), head.end(), width); at != std::sregex_iterator();
         ++at, ++columns)
      parts += std::stod((*at)[1]);
    CHECK(columns == paper.table.columns.size());  // every column has a fixed width
    CHECK(parts * article_width + 2 * 1.5 * static_cast<double>(columns - 1) <= article_width);
  }
}

TEST_CASE("the tables compile in an 11 pt A4 article without an overfull box or a duplicate label") {
  if (std::system("pdflatex --version > /dev/null 2>&1") != 0) {
    MESSAGE("only on a machine with LaTeX");
    return;
  }
  const tests::ScratchFolder folder;
  const ReportData data = wide_numbers();
  std::string article =
      "\\documentclass[11pt,a4paper]{article}\n\\usepackage{array,booktabs,longtable}\n\\begin{document}\n";
  for (const std::string& text : tables_of(compose(data))) article += text + "\n";
  tests::write_text(folder / "article.tex", article + "\\end{document}\n");
  const std::string command =
      "cd '" + folder.path().string() +
      "' && for time in 1 2 3; do pdflatex -interaction=nonstopmode article.tex > log.txt "
      "2>&1 < /dev/null || exit 1; done";
  const int code = std::system(command.c_str());
  const std::string log = tests::read_text(folder / "log.txt");
  CHECK_MESSAGE(code == 0, log);
  for (const char* complaint : {"Overfull", "multiply defined", "undefined"})
    CHECK_MESSAGE(!contains(log, complaint), log);
}

}  // namespace
}  // namespace trainyard::reports
