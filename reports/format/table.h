// A table as neutral data: numbers stay numbers until a renderer writes them. Filled by figures and verdicts,
// written by the page and by `table_text`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trainyard::reports {

using TableValue = std::variant<std::string, std::int64_t, double>;  // NaN: no value

// A row of one text in a table of several columns heads the rows below it.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<TableValue>> rows;
};

// Tables as files: CSV for machines, LaTeX (booktabs) and Markdown for papers. Six significant digits at
// most, no locale: the same table gives the same bytes on any machine.

// A value for people: "0.2341", "–" for NaN.
std::string shown(const TableValue& value, int digits = 4);

// RFC 4180 with line feeds. A text that a spreadsheet would take for a formula gets a leading apostrophe; a
// number is written as it is, NaN as an empty field.
std::string csv_text(const Table& table);
std::string csv_field(const std::string& text);

std::string markdown_table(const Table& table);

// LaTeX columns that break their text into lines, of this part of the line's width. All columns of a table
// and the gaps between them must fit into the width of an 11 pt A4 article, 360 pt.
std::string left_column(double width);
std::string right_column(double width);
// Of a long table of effects: metric, verdict, effect, two intervals, p with its hypothesis, n.
std::string effects_columns();

struct LatexOptions {
  std::string columns;      // of the tabular: "ll" + left_column(0.2)
  std::string caption;      // plain text
  std::string label;        // "tab:verdicts"
  bool long_table = false;  // small print, over pages
};
std::string latex_table(const Table& table, const LatexOptions& options);

std::string latex_escaped(std::string_view text);
std::string markdown_escaped(std::string_view text);

}  // namespace trainyard::reports
