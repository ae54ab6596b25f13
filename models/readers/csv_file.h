// Read a table from a CSV file (RFC 4180): cells between commas, in rows. The first row has the names of the
// columns.
//
// - A cell may be in quotation marks. Then it may contain commas, line breaks and doubled quotation marks.
// - A row ends with "\n" or "\r\n". Rows without any character are left out. A byte order mark is skipped.
// - The file is in UTF-8, plain or in gzip, with at most `most_text` bytes (data_file.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"

namespace trainyard::models {

struct CsvTable {
  std::filesystem::path file;
  std::vector<std::string> names;   // of the columns, all different
  std::vector<std::string> cells;   // [row, column], without the first row
  std::vector<std::int64_t> lines;  // [row]: the line at which it begins, from 1
  std::size_t rows() const { return lines.size(); }
  const std::string& cell(std::size_t row, std::size_t column) const {
    return cells[row * names.size() + column];
  }
};

// The name of the part, the number of bytes and the bytes are added to `hash`.
// UserError with the line if the file is damaged, if rows have different numbers of cells, if names are missing or
// equal, or if there are no rows.
CsvTable read_csv(const std::filesystem::path& file, const std::string& part, Sha256& hash);

// The table in `text`, with the same errors about `file`. `unnamed`: one column needs no name, as the index of pandas.
CsvTable parse_csv(const std::filesystem::path& file, const std::string& text, bool unnamed = false);

// The index of a column. UserError with the names of the columns if there is none.
std::size_t column_of(const CsvTable& table, const std::string& name);

// A cell without white space at its ends. UserError with the line if it is empty.
std::string_view cell_text(const CsvTable& table, std::size_t row, std::size_t column);

UserError csv_error(const std::filesystem::path& file, std::int64_t line, const std::string& message,
                    const std::string& advice);

}  // namespace trainyard::models
