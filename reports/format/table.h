// A table as neutral data, and one writer per format: text for a terminal, Markdown, CSV, JSON, LaTeX, HTML.
//
// Numbers stay numbers until a writer formats them. Output does not depend on the locale: the same table
// gives the same bytes on any machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reports/format/markup.h"

namespace trainyard::reports {

// A text in bold print. On a terminal it has asterisks around it, as in Markdown. Programs (CSV, JSON) get the text alone.
struct Strong {
  std::string text;
};

using TableValue = std::variant<std::string, std::int64_t, double, Strong>;  // NaN: no value
using TableRow = std::vector<TableValue>;

// A column. From a title alone: text, aligned left.
struct TableColumn {
  TableColumn(const char* text) : title(text) {}
  TableColumn(std::string text) : title(std::move(text)) {}

  std::string title;
  bool right = false;  // aligned right, as numbers are
  double width = 0;    // in LaTeX: part of the line width, text is wrapped; 0: as wide as its text
  std::string style;   // HTML class of its cells; "n" if the column is aligned right
};
TableColumn left_column(std::string title, double width);
TableColumn right_column(std::string title, double width = 0);

// In a table of several columns, a row of one text is a heading of the rows below it.
struct Table {
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::string caption;             // plain text, in LaTeX and HTML
  std::vector<std::string> notes;  // sentences below the table, on a terminal and in Markdown
  // true: shortest form of numbers that reads back as the same value. false: six significant digits for
  // programs and four for people.
  bool exact = false;
};

// A value for people: "0.2341"; "–" for NaN (in an exact table nothing).
std::string shown(const TableValue& value, bool exact = false);

// For a terminal: `aligned_table` in reports/format/aligned_text.h.
std::string markdown_table(const Table& table);

// RFC 4180 with line feeds. A text that a spreadsheet would read as a formula gets a leading apostrophe. NaN
// is an empty field.
std::string csv_table(const Table& table);
std::string csv_head(const Table& table);
std::string csv_row(const Table& table, const TableRow& row);

// An array of objects with members in the order of the columns. A row is an object on one line.
std::string json_table(const Table& table);
std::string json_row(const Table& table, const TableRow& row);

enum class LatexLayout {
  short_table,  // `table`
  long_table,   // `longtable`, in small print: it spans pages, but works in one-column documents only
  two_columns   // `table*` as wide as both columns
};

// A LaTeX table with booktabs. All columns and the gaps between them must fit into the 360 pt of an 11 pt A4
// article. `label`: "tab:verdicts".
std::string latex_table(const Table& table, const std::string& label,
                        LatexLayout layout = LatexLayout::short_table);

// An HTML table in a frame that scrolls. `style`: class of the table. If cells hold more than text, the
// caller opens the table, adds its rows, and closes body, table and frame.
Markup html_table(const Table& table, const std::string& style);
void open_html_table(Markup& out, const Table& table, const std::string& style);

std::string latex_escaped(std::string_view text);
std::string markdown_escaped(std::string_view text);

}  // namespace trainyard::reports
