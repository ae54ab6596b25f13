// One table in each format: numbers for machines and for people, and escaped names.
#include "reports/format/table.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "reports/format/aligned_text.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

Table with(std::vector<TableColumn> columns, std::vector<TableRow> rows) {
  Table table;
  table.columns = std::move(columns);
  table.rows = std::move(rows);
  return table;
}

TEST_CASE("CSV is quoted, formulas are neutralised, and numbers remain numbers") {
  const Table table =
      with({"name", "value"}, {{"=1+1", -0.25}, {"a,\"b\"\nc", 1234567.0}, {"@x", std::nan("")}});
  CHECK(csv_table(table) == "name,value\n'=1+1,-0.25\n\"a,\"\"b\"\"\nc\",1234567\n'@x,\n");
  CHECK(csv_table(with({"x"}, {{0.1 + 0.2}, {1.0 / 3}})) == "x\n0.3\n0.333333\n");
}

TEST_CASE("names are escaped in LaTeX and Markdown") {
  CHECK(latex_escaped("50% & \\input{x}_#$^~") ==
        "50\\% \\& \\textbackslash{}input\\{x\\}\\_\\#\\$\\textasciicircum{}\\textasciitilde{}");
  CHECK(latex_escaped("\u22120.5 × ±1") == "$-$0.5 $\\times$ $\\pm$1");
  CHECK(markdown_escaped("a|b <img> [x](y) _*`!") == "a\\|b &lt;img&gt; \\[x\\](y) \\_\\*\\`\\!");
  const Table headed = with({"a", "b"}, {{"50%"}, {"x", 0.25}});
  CHECK(markdown_table(headed) == "| a | b |\n|---|---|\n| **50%** |  |\n| x | 0.2500 |\n");
  CHECK(latex_table(headed, "tab:c")
            .find("\\multicolumn{2}{@{}>{\\raggedright\\arraybackslash}p{1\\linewidth}@{}}{50\\%} \\\\*\nx & "
                  "0.2500 \\\\\n") != std::string::npos);
  CHECK(markdown_table(with({"a", ""}, {{"x|y", 0.25}})) == "| a |  |\n|---|---|\n| x\\|y | 0.2500 |\n");
}

TEST_CASE("columns of numbers are right-aligned in every format with alignment") {
  Table table = with({"arm", right_column("n")}, {{"ddp", 12}, {"gpipe", 3}});
  CHECK(aligned_table(table) == "arm     n\nddp    12\ngpipe   3\n");
  CHECK(markdown_table(table) == "| arm | n |\n|---|---:|\n| ddp | 12 |\n| gpipe | 3 |\n");
  CHECK(latex_table(table, "tab:t").find("\\begin{tabular}{@{}lr@{}}") != std::string::npos);
  table.columns[1].width = 0.1;
  CHECK(latex_table(table, "tab:t").find("{@{}l>{\\raggedleft\\arraybackslash}p{0.1\\linewidth}@{}}") !=
        std::string::npos);
}

TEST_CASE("an exact table has numbers that read back unchanged, and empty cells for missing values") {
  Table table = with({"x", "y"}, {{0.1 + 0.2, 3.0}, {std::nan(""), std::numeric_limits<double>::min()}});
  CHECK(csv_table(table) == "x,y\n0.3,3\n,2.22507e-308\n");
  CHECK(aligned_table(table) == "x       y\n0.3000  3.000\n–       2.2e-308\n");
  table.exact = true;
  CHECK(csv_table(table) == "x,y\n0.30000000000000004,3.0\n,2.2250738585072014e-308\n");
  CHECK(nlohmann::json::parse(json_table(table)) ==
        nlohmann::json::parse(
            R"([{"x": 0.30000000000000004, "y": 3.0}, {"x": null, "y": 2.2250738585072014e-308}])"));
  CHECK(json_row(table, {std::int64_t{1}, "a\"b"}) == "{\"x\":1,\"y\":\"a\\\"b\"}\n");
}

TEST_CASE("bold print is kept by every format for people, and left out for programs") {
  const Table table = with({"arm", "mean"}, {{"ddp", Strong{"97 % ± 1"}}});
  CHECK(markdown_table(table) == "| arm | mean |\n|---|---|\n| ddp | **97 % ± 1** |\n");
  CHECK(contains(latex_table(table, "tab:t"), "ddp & \\textbf{97 \\% $\\pm$ 1} \\\\\n"));
  CHECK(contains(html_table(table, "s").str(), "<td>ddp</td><td><b>97 % ± 1</b></td>"));
  CHECK(aligned_table(table) == "arm  mean\nddp  *97 % ± 1*\n");
  CHECK(csv_table(table) == "arm,mean\nddp,97 % ± 1\n");
  CHECK(nlohmann::json::parse(json_table(table))[0]["mean"] == "97 % ± 1");
}

TEST_CASE("a row of one text is a heading across all columns of a table in HTML") {
  const Table table = with({"a", "b"}, {{"group"}, {"x", "y"}});
  CHECK(contains(html_table(table, "s").str(),
                 "<tr><th scope=\"colgroup\" colspan=\"2\">group</th></tr>\n<tr><td>x</td><td>y</td></tr>"));
}

TEST_CASE("notes follow a table on a terminal, within its width, and in Markdown") {
  Table table = with({"arm"}, {{"ddp"}});
  table.notes = {"one two three", "a*b"};
  CHECK(aligned_table(table, 10) == "arm\nddp\n\none two\n  three\na*b\n");
  CHECK(markdown_table(table) == "| arm |\n|---|\n| ddp |\n\n- one two three\n- a\\*b\n");
}

TEST_CASE("a table in HTML escapes its texts and marks its columns of numbers") {
  Table table = with({"a<b", right_column("n")}, {{"&", 1}});
  table.caption = "c";
  CHECK(
      html_table(table, "s").str() ==
      "<div class=\"scroll\"><table class=\"s\"><caption>c</caption><thead><tr><th scope=\"col\">a&lt;b</th>"
      "<th scope=\"col\" class=\"n\">n</th></tr></thead><tbody>\n"
      "<tr><td>&amp;</td><td class=\"n\">1</td></tr>\n</tbody></table></div>");
}

}  // namespace
}  // namespace trainyard::reports
