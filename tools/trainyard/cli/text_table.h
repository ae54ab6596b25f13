// A table of text cells and its ways of being printed: aligned for a terminal, Markdown, and (from
// typed rows) CSV, JSON and JSON Lines. Used by every verb that lists something.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "db/queries/queries.h"

namespace trainyard::tools {

struct TextTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as columns
  std::vector<bool> right;                     // per column: align right; empty = none
};

// Columns padded to their widest cell, two spaces between, no trailing blanks. `width`: columns of the
// terminal, to which rows are wrapped; 0: no limit. See reports/format/aligned_text.h.
std::string aligned(const TextTable& table, std::size_t width = 0);
// Columns of the terminal that standard output (1) or standard error (2) is, 80 if they are unknown; 0 for a
// file or a pipe.
std::size_t output_width(int descriptor = 1);
std::string markdown(const TextTable& table);  // pipes in cells escaped

// RFC 4180, but lines end as shells expect (\n). A text cell that a spreadsheet would run as a formula
// (begins with = + - @, tab or return) gets a leading apostrophe.
std::string csv(const db::ResultTable& table);
std::string csv_line(const std::vector<nlohmann::json>& cells);
std::string json_line(const std::vector<std::string>& columns, const std::vector<nlohmann::json>& cells);
std::string json(const db::ResultTable& table);  // an array of objects, members in column order

// NULL as empty, numbers in the shortest form that reads back, numeric columns aligned right.
TextTable text_table(const db::ResultTable& table);

// `digits` after the point; empty for NaN.
std::string number_text(double value, int digits);

}  // namespace trainyard::tools
