#include "models/readers/csv_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "models/readers/data_file.h"

namespace trainyard::models {

namespace {

class CsvParser {
 public:
  CsvParser(const std::filesystem::path& file, std::string_view text) : file_(file), rest_(text) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
  }

  // The line at which the next row begins. Rows without any character are passed over.
  std::int64_t line() {
    while (ends_row() && !rest_.empty()) end_row();
    return line_;
  }
  bool at_end() const { return rest_.empty(); }

  // Appends the cells of the next row. Returns how many there are.
  std::size_t row(std::vector<std::string>& cells) {
    for (std::size_t count = 1;; ++count) {
      cells.push_back(rest_.starts_with('"') ? quoted() : plain());
      if (!rest_.starts_with(',')) {
        end_row();
        return count;
      }
      rest_.remove_prefix(1);
    }
  }

 private:
  bool ends_row() const { return rest_.empty() || rest_.starts_with('\n') || rest_.starts_with("\r\n"); }

  void end_row() {
    if (rest_.starts_with('\r')) rest_.remove_prefix(1);
    if (!rest_.empty()) rest_.remove_prefix(1);
    ++line_;
  }

  std::string plain() {
    const std::size_t end = std::min(rest_.find_first_of(",\n\""), rest_.size());
    if (end < rest_.size() && rest_[end] == '"')
      throw csv_error(file_, line_, "a quotation mark is inside a cell that does not begin with one",
                      "put the cell in quotation marks, and double those inside");
    std::string_view cell = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (cell.ends_with('\r') && !rest_.starts_with(',')) cell.remove_suffix(1);
    return std::string(cell);
  }

  std::string quoted() {
    const std::int64_t begin = line_;
    std::string cell;
    for (rest_.remove_prefix(1);; rest_.remove_prefix(1)) {
      const std::size_t end = rest_.find('"');
      if (end == std::string_view::npos)
        throw csv_error(file_, begin, "a quotation mark is not closed", "add the closing quotation mark");
      line_ += std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
      cell += rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
      if (!rest_.starts_with('"')) break;
      cell += '"';
    }
    if (!ends_row() && !rest_.starts_with(','))
      throw csv_error(
          file_, line_, "characters follow a closing quotation mark",
          "write a comma or a line break behind it, and double the quotation marks inside a cell");
    return cell;
  }

  const std::filesystem::path& file_;
  std::string_view rest_;
  std::int64_t line_ = 1;
};

void check_names(const CsvTable& table, std::int64_t line, bool unnamed) {
  std::vector<std::string> sorted = table.names;
  std::ranges::sort(sorted);
  if (const auto same = std::ranges::adjacent_find(sorted); same != sorted.end())
    throw csv_error(table.file, line,
                    same->empty() ? std::string("columns have no name")
                                  : fmt::format("two columns have the name \"{}\"", *same),
                    "give each column a name of its own");
  if (sorted.front().empty() && !unnamed)
    throw csv_error(table.file, line, "a column has no name", "the first row must name all columns");
}

}  // namespace

UserError csv_error(const std::filesystem::path& file, std::int64_t line, const std::string& message,
                    const std::string& advice) {
  return UserError(message, advice, {.file = file.string(), .line = static_cast<int>(line)});
}

CsvTable read_csv(const std::filesystem::path& file, const std::string& part, Sha256& hash) {
  const std::string text = read_text_file(file, "correct the file, and save it in UTF-8");
  hash.update(fmt::format("part {}\n{}\n", part, text.size()));
  hash.update(text);
  return parse_csv(file, text);
}

CsvTable parse_csv(const std::filesystem::path& file, const std::string& text, bool unnamed) {
  CsvTable table{.file = file, .names = {}, .cells = {}, .lines = {}};
  CsvParser parser(file, text);
  const std::int64_t head = parser.line();
  if (parser.at_end())
    throw UserError(file.string() + " is empty", "write the names of the columns into the first row");
  parser.row(table.names);
  check_names(table, head, unnamed);
  for (std::int64_t line = parser.line(); !parser.at_end(); line = parser.line()) {
    if (const std::size_t count = parser.row(table.cells); count != table.names.size())
      throw csv_error(
          file, line,
          fmt::format("the row has {}, but the first row has {}", counted(count, "cell"), table.names.size()),
          "write one cell per column, and put cells with commas in quotation marks");
    table.lines.push_back(line);
  }
  if (table.rows() == 0)
    throw UserError(file.string() + " has only the names of the columns", "add rows below them");
  return table;
}

std::size_t column_of(const CsvTable& table, const std::string& name) {
  const auto found = std::ranges::find(table.names, name);
  if (found != table.names.end()) return static_cast<std::size_t>(found - table.names.begin());
  constexpr std::size_t most_shown = 20;
  std::vector<std::string> shown = table.names;
  if (shown.size() > most_shown) shown.resize(most_shown);
  throw csv_error(table.file, 1, fmt::format("there is no column \"{}\"", name),
                  fmt::format("the columns are \"{}\"{}", joined(shown, {}, "\", \""),
                              shown.size() < table.names.size() ? ", …" : ""));
}

std::string_view cell_text(const CsvTable& table, std::size_t row, std::size_t column) {
  const std::string_view text = trimmed(table.cell(row, column));
  if (text.empty())
    throw csv_error(table.file, table.lines[row],
                    fmt::format("column \"{}\" has no value", table.names[column]),
                    "add the value, or remove the row");
  return text;
}

}  // namespace trainyard::models
