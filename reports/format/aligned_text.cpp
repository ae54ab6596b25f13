#include "reports/format/aligned_text.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/text.h"

namespace trainyard::reports {

namespace {

using TextRow = std::vector<std::string>;
using Widths = std::vector<std::size_t>;

constexpr std::size_t between = 2;
constexpr std::size_t narrowest_text = 12;  // columns of text are not shrunk below it

// The longest beginning of at most `width` columns. `text` must be wider.
std::string beginning_of(std::string_view text, std::size_t width) {
  static constexpr std::string_view ellipsis = "…";
  std::string cut = shortened(std::string(text) + "   ", width + 1);
  return cut.substr(0, cut.size() - ellipsis.size());
}

// All cells as text, the head first.
std::vector<TextRow> text_rows(const Table& table) {
  std::vector<TextRow> rows(1);
  for (const TableColumn& column : table.columns) rows.front().push_back(printable_line(column.title));
  for (const TableRow& row : table.rows) {
    TextRow& cells = rows.emplace_back();
    for (const TableValue& value : row) {
      const std::string text = printable_line(shown(value, table.exact));
      cells.push_back(std::holds_alternative<Strong>(value) ? "*" + text + "*" : text);
    }
    cells.resize(table.columns.size());
  }
  return rows;
}

std::size_t total_width(const Widths& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + between * (widths.size() - 1);
}

Widths natural_widths(const std::vector<TextRow>& rows) {
  Widths widths(rows.front().size(), 0);
  for (const TextRow& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], trainyard::columns(row[i]));
  return widths;
}

std::size_t longest_word(const std::vector<TextRow>& rows, std::size_t column) {
  std::size_t longest = 0;
  for (const TextRow& row : rows) {
    std::string_view text = row[column];
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      longest = std::max(longest, trainyard::columns(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  return longest;
}

// Shrinks the widest text columns, but none below its longest word. Empty if that is not enough.
Widths shrunk(Widths widths, const std::vector<TextRow>& rows, const Table& table, std::size_t width) {
  Widths least = widths;
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (!table.columns[i].right)
      least[i] = std::min(widths[i], std::max(longest_word(rows, i), narrowest_text));
  if (total_width(least) > width) return {};
  while (total_width(widths) > width) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (widths[i] > least[i] && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    --widths[widest];
  }
  return widths;
}

// The first column of each output line of a row.
std::vector<std::size_t> line_starts(const Widths& widths, std::size_t width) {
  std::vector<std::size_t> starts{0};
  std::size_t used = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const bool first = i == starts.back();
    const std::size_t needed = (first ? (i == 0 ? 0 : between) : used + between) + widths[i];
    if (first || needed <= width) {
      used = needed;
    } else {
      starts.push_back(i);
      used = between + widths[i];
    }
  }
  return starts;
}

// The cells `first` … `last` − 1 of a row as text, wrapped to the widths of their columns.
std::string cell_lines(const TextRow& row, std::size_t first, std::size_t last, const Widths& widths,
                       const Table& table) {
  std::vector<std::vector<std::string>> cells;
  std::size_t height = 1;
  for (std::size_t i = first; i < last; ++i) {
    cells.push_back(wrapped(row[i], widths[i]));
    height = std::max(height, cells.back().size());
  }
  std::string text;
  for (std::size_t at = 0; at < height; ++at) {
    std::string line(first == 0 ? 0 : between, ' ');
    for (std::size_t i = first; i < last; ++i) {
      const std::vector<std::string>& cell = cells[i - first];
      const std::string part = at < cell.size() ? cell[at] : "";
      if (i > first) line.append(between, ' ');
      line += table.columns[i].right ? padded_left(part, widths[i]) : padded(part, widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  const std::string line = printable_line(text);
  if (width == 0 || trainyard::columns(line) <= width) return {line};
  std::vector<std::string> lines;
  std::string now;
  std::string_view rest = line;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    std::string word(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!now.empty() && trainyard::columns(now) + 1 + trainyard::columns(word) <= width) {
      now += " " + word;
      continue;
    }
    if (!now.empty()) lines.push_back(std::move(now));
    while (trainyard::columns(word) > width) {
      const std::string begin = beginning_of(word, width);
      if (begin.empty()) break;  // a wide character does not fit into one column
      lines.push_back(begin);
      word.erase(0, begin.size());
    }
    now = std::move(word);
  }
  if (!now.empty() || lines.empty()) lines.push_back(std::move(now));
  return lines;
}

std::string paragraph(std::string_view text, std::size_t width) {
  constexpr std::size_t indent = 2;
  if (width <= indent) return printable_line(text) + "\n";
  std::string lines;
  for (const std::string& line : wrapped(text, width - indent))
    lines += fmt::format("{}{}\n", lines.empty() ? "" : "  ", line);
  return lines;
}

std::string aligned_table(const Table& table, std::size_t width) {
  const std::vector<TextRow> rows = text_rows(table);
  Widths widths = natural_widths(rows);
  std::vector<std::size_t> starts{0};
  if (width != 0 && total_width(widths) > width) {
    if (const Widths narrower = shrunk(widths, rows, table, width); !narrower.empty()) {
      widths = narrower;
    } else {
      const std::size_t most = std::max(width, 2 * between) - between;
      for (std::size_t& column : widths) column = std::min(column, most);
      starts = line_starts(widths, width);
    }
  }
  starts.push_back(widths.size());
  std::string text;
  for (const TextRow& row : rows)
    for (std::size_t i = 0; i + 1 < starts.size(); ++i)
      text += cell_lines(row, starts[i], starts[i + 1], widths, table);
  for (const std::string& note : table.notes)
    text += (&note == &table.notes.front() ? "\n" : "") + paragraph(note, width);
  return text;
}

}  // namespace trainyard::reports
