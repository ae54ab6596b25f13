// A table as neutral data, and one writer per format: text for a terminal, Markdown, CSV, JSON, LaTeX, HTML.
//
// All that trainyard lists, compares and reports in rows is such a table. Numbers stay numbers until a writer
// writes them. There is no locale: the same table gives the same bytes on any machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reports/format/markup.h"

namespace trainyard::reports {

using TableValue = std::variant<std::string, std::int64_t, double>;  // NaN: no value
using TableRow = std::vector<TableValue>;

// Made from a title: a column of text, aligned left.
struct TableColumn {
  TableColumn(const char* text) : title(text) {}
  TableColumn(std::string text) : title(std::move(text)) {}

  std::string title;
  bool right = false;  // aligned right, as numbers are
  double width = 0;    // in LaTeX: part of the line's width, text is broken there; 0: as wide as its text
  std::string style;   // class of its cells in HTML; of a column that is aligned right: "n"
};
TableColumn left_column(std::string title, double width);
TableColumn right_column(std::string title, double width = 0);

// A row of one text in a table of several columns heads the rows below it.
struct Table {
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::string caption;             // plain text, in LaTeX and HTML
  std::vector<std::string> notes;  // sentences below the table, on a terminal and in Markdown
  // Numbers in the shortest form that reads back as the same one. Else in six significant digits for machines
  // and four for people.
  bool exact = false;
};

// A value for people: "0.2341"; "–" for NaN, of an exact table nothing.
std::string shown(const TableValue& value, bool exact = false);

// For a terminal: `aligned_table` in reports/format/aligned_text.h.
std::string markdown_table(const Table& table);

// RFC 4180 with line feeds. A text that a spreadsheet would take for a formula gets a leading apostrophe; a
// number is written as it is, NaN as an empty field.
std::string csv_table(const Table& table);
std::string csv_head(const Table& table);
std::string csv_row(const Table& table, const TableRow& row);

// An array of objects, members in the order of the columns; a row as an object on one line.
std::string json_table(const Table& table);
std::string json_row(const Table& table, const TableRow& row);

// With booktabs. All columns of a table and the gaps between them must fit into the width of an 11 pt A4
// article, 360 pt. `label`: "tab:verdicts". A long table is in small print, over pages.
std::string latex_table(const Table& table, const std::string& label, bool long_table = false);

// In a frame that scrolls; `style` is the class of the table. If cells hold more than text, the caller opens
// the table, adds its rows, and closes its body, the table and the frame.
Markup html_table(const Table& table, const std::string& style);
void open_html_table(Markup& out, const Table& table, const std::string& style);

std::string latex_escaped(std::string_view text);
std::string markdown_escaped(std::string_view text);

}  // namespace trainyard::reports
