#include "tools/trainyard/cli/text_table.h"

#include <cmath>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "reports/format/aligned_text.h"
#include "reports/format/table.h"

namespace trainyard::tools {
namespace {

bool aligned_right(const TextTable& table, std::size_t column) {
  return column < table.right.size() && table.right[column];
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const auto& cell : cells) {
    line += ' ';
    for (const char c : cell) {
      if (c == '|') line += '\\';
      line += c == '\n' ? ' ' : c;
    }
    line += " |";
  }
  return line + '\n';
}

std::string cell_text(const nlohmann::json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string csv_cell(const nlohmann::json& value) {
  return value.is_string() ? reports::csv_field(value.get_ref<const std::string&>()) : cell_text(value);
}

template <class Cells>
std::string csv_row(const Cells& cells) {
  std::string line;
  for (const auto& cell : cells)
    line += (line.empty() && &cell == &cells.front() ? "" : ",") + csv_cell(cell);
  return line + "\n";
}

}  // namespace

std::string aligned(const TextTable& table, std::size_t width) {
  std::vector<reports::TextRow> rows{table.columns};
  rows.insert(rows.end(), table.rows.begin(), table.rows.end());
  std::vector<bool> right = table.right;
  if (!right.empty()) right.resize(table.columns.size());
  return reports::aligned_rows(rows, right, width);
}

std::size_t output_width(int descriptor) {
  constexpr std::size_t usual = 80;
  if (::isatty(descriptor) == 0) return 0;
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

std::string markdown(const TextTable& table) {
  std::string text = markdown_row(table.columns) + "|";
  for (std::size_t i = 0; i < table.columns.size(); ++i) text += aligned_right(table, i) ? "---:|" : "---|";
  text += '\n';
  for (const auto& row : table.rows) text += markdown_row(row);
  return text;
}

std::string csv_line(const std::vector<nlohmann::json>& cells) {
  return csv_row(cells);
}

std::string json_line(const std::vector<std::string>& columns, const std::vector<nlohmann::json>& cells) {
  auto object = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < cells.size(); ++i) object[columns[i]] = cells[i];
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string csv(const db::ResultTable& table) {
  std::string text = csv_row(std::vector<nlohmann::json>(table.columns.begin(), table.columns.end()));
  for (const auto& row : table.rows) text += csv_row(row);
  return text;
}

std::string json(const db::ResultTable& table) {
  auto array = nlohmann::ordered_json::array();
  for (const auto& row : table.rows) {
    auto object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) object[table.columns[i]] = row[i];
    array.push_back(std::move(object));
  }
  return array.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

TextTable text_table(const db::ResultTable& table) {
  TextTable text{
      .columns = table.columns, .rows = {}, .right = std::vector<bool>(table.columns.size(), true)};
  for (const auto& row : table.rows) {
    auto& cells = text.rows.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) {
      cells.push_back(cell_text(row[i]));
      if (row[i].is_string()) text.right[i] = false;
    }
  }
  return text;
}

std::string number_text(double value, int digits) {
  return std::isnan(value) ? "" : fmt::format("{:.{}f}", value, digits);
}

}  // namespace trainyard::tools
