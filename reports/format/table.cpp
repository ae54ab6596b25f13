#include "reports/format/table.h"

#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string csv_field(const std::string& text) {
  const bool formula =
      !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  if (text.find_first_of("\",\r\n") == std::string::npos) return (formula ? "'" : "") + text;
  std::string quoted = formula ? "\"'" : "\"";
  for (const char character : text) quoted += character == '"' ? "\"\"" : std::string(1, character);
  return quoted + "\"";
}

std::string csv_value(const TableValue& value, bool exact) {
  if (const auto* number = std::get_if<double>(&value); number != nullptr && !exact)
    return std::isnan(*number) ? "" : plain_number(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return csv_field(*text);
  return shown(value, exact);
}

// Replaces the first text of each pair by the second. Drops control characters, also line breaks.
template <std::size_t N>
std::string replaced(std::string_view text,
                     const std::array<std::pair<std::string_view, std::string_view>, N>& pairs) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    bool found = false;
    for (const auto& [from, to] : pairs) {
      if (text.substr(at, from.size()) != from) continue;
      out += to;
      at += from.size();
      found = true;
      break;
    }
    if (found) continue;
    const auto byte = static_cast<unsigned char>(text[at++]);
    if (byte >= 0x20 && byte != 0x7f) out += static_cast<char>(byte);
  }
  return out;
}

bool is_heading(const TableRow& row, const Table& table) {
  return row.size() == 1 && table.columns.size() > 1;
}

std::vector<std::string> escaped_cells(const Table& table, const TableRow& row,
                                       std::string (*escape)(std::string_view)) {
  std::vector<std::string> cells;
  cells.reserve(table.columns.size());
  for (const TableValue& value : row) cells.push_back(escape(shown(value, table.exact)));
  return cells;
}

TableRow titles(const Table& table) {
  TableRow row;
  for (const TableColumn& column : table.columns) row.emplace_back(column.title);
  return row;
}

std::string latex_column(const TableColumn& column) {
  if (column.width == 0) return column.right ? "r" : "l";
  return fmt::format(">{{\\{}\\arraybackslash}}p{{{}\\linewidth}}",
                     column.right ? "raggedleft" : "raggedright", plain_number(column.width));
}

std::string latex_row(const Table& table, const TableRow& row) {
  return joined(escaped_cells(table, row, latex_escaped), {}, " & ") + " \\\\\n";
}

std::string latex_body(const Table& table) {
  std::string text;
  for (const TableRow& row : table.rows) {
    if (!is_heading(row, table)) {
      text += latex_row(table, row);
      continue;
    }
    text += &row == &table.rows.front() ? "" : "\\addlinespace\n";
    text += fmt::format("\\multicolumn{{{}}}{{@{{}}{}@{{}}}}{{{}}} \\\\*\n", table.columns.size(),
                        latex_column(left_column("", 1)), escaped_cells(table, row, latex_escaped).front());
  }
  return text;
}

}  // namespace

TableColumn left_column(std::string title, double width) {
  TableColumn column(std::move(title));
  column.width = width;
  return column;
}

TableColumn right_column(std::string title, double width) {
  TableColumn column = left_column(std::move(title), width);
  column.right = true;
  column.style = "n";
  return column;
}

std::string shown(const TableValue& value, bool exact) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  const double number = std::get<double>(value);
  if (!exact) return for_table(number);
  return std::isnan(number) ? "" : Json(number).dump();
}

std::string csv_row(const Table& table, const TableRow& row) {
  return joined(
             row, [&](const TableValue& value) { return csv_value(value, table.exact); }, ",") +
         "\n";
}

std::string csv_head(const Table& table) {
  return csv_row(table, titles(table));
}

std::string csv_table(const Table& table) {
  std::string text = csv_head(table);
  for (const TableRow& row : table.rows) text += csv_row(table, row);
  return text;
}

namespace {

Json json_object(const Table& table, const TableRow& row) {
  Json object = Json::object();
  for (std::size_t i = 0; i < row.size(); ++i) {
    Json& member = object[table.columns[i].title];
    std::visit([&](const auto& value) { member = value; }, row[i]);
    if (member.is_number_float() && !table.exact) member = rounded(member.get<double>());
  }
  return object;
}

}  // namespace

std::string json_row(const Table& table, const TableRow& row) {
  return json_text(json_object(table, row), -1);
}

std::string json_table(const Table& table) {
  Json array = Json::array();
  for (const TableRow& row : table.rows) array.push_back(json_object(table, row));
  return json_text(array, 2);
}

std::string markdown_escaped(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> pairs{{{"\n", " "},
                                                                                        {"&", "&amp;"},
                                                                                        {"<", "&lt;"},
                                                                                        {">", "&gt;"},
                                                                                        {"|", "\\|"},
                                                                                        {"\\", "\\\\"},
                                                                                        {"`", "\\`"},
                                                                                        {"*", "\\*"},
                                                                                        {"_", "\\_"},
                                                                                        {"[", "\\["},
                                                                                        {"]", "\\]"},
                                                                                        {"!", "\\!"}}};
  return replaced(text, pairs);
}

std::string markdown_table(const Table& table) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& cells) {
    text += "| " + joined(cells, {}, " | ") + " |\n";
  };
  add(escaped_cells(table, titles(table), markdown_escaped));
  text += "|";
  for (const TableColumn& column : table.columns) text += column.right ? "---:|" : "---|";
  text += "\n";
  for (const TableRow& row : table.rows) {
    std::vector<std::string> cells = escaped_cells(table, row, markdown_escaped);
    if (is_heading(row, table)) cells.front() = "**" + cells.front() + "**";
    cells.resize(table.columns.size());
    add(cells);
  }
  for (const std::string& note : table.notes)
    text += (&note == &table.notes.front() ? "\n- " : "- ") + markdown_escaped(note) + "\n";
  return text;
}

std::string latex_escaped(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 30> pairs{
      {{"\n", " "},         {"\\", "\\textbackslash{}"},
       {"{", "\\{"},        {"}", "\\}"},
       {"&", "\\&"},        {"%", "\\%"},
       {"$", "\\$"},        {"#", "\\#"},
       {"_", "\\_"},        {"~", "\\textasciitilde{}"},
       {"<", "$<$"},        {"^", "\\textasciicircum{}"},
       {">", "$>$"},        {"|", "\\textbar{}"},
       {"\"", "''"},        {"[", "{[}"},
       {"]", "{]}"},        {"\u2212", "$-$"},
       {"×", "$\\times$"},  {"±", "$\\pm$"},
       {"†", "$\\dagger$"}, {"≤", "$\\le$"},
       {"≥", "$\\ge$"},     {"δ", "$\\delta$"},
       {"α", "$\\alpha$"},  {"–", "--"},
       {"«", "``"},         {"»", "''"},
       {"…", "\\dots{}"},   {"≈", "$\\approx$"}}};
  return replaced(text, pairs);
}

std::string latex_table(const Table& table, const std::string& label, bool long_table) {
  std::string columns;
  for (const TableColumn& column : table.columns) columns += latex_column(column);
  const std::string caption = "\\caption{" + latex_escaped(table.caption) + "}\\label{" + label + "}";
  const std::string head = "\\toprule\n" + latex_row(table, titles(table)) + "\\midrule\n";
  const std::string rows = latex_body(table);
  if (long_table)  // the caption is only in the head of the first page, as a label must be unique
    return "% needs \\usepackage{array,booktabs,longtable}\n{\\scriptsize\\setlength{\\tabcolsep}{1.5pt}"
           "\\setlength{\\LTcapwidth}{\\linewidth}\n\\begin{longtable}{@{}" +
           columns + "@{}}\n" + caption + " \\\\\n" + head + "\\endfirsthead\n" + head +
           "\\endhead\n\\bottomrule\n\\endfoot\n" + rows + "\\end{longtable}}\n";
  return "% needs \\usepackage{array,booktabs}\n\\begin{table}\n\\centering\n" + caption +
         "\n\\small\n\\begin{tabular}{@{}" + columns + "@{}}\n" + head + rows +
         "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

void open_html_table(Markup& out, const Table& table, const std::string& style) {
  out.open("div", {{"class", "scroll"}}).open("table", {{"class", style}});
  if (!table.caption.empty()) out.leaf("caption", {}, table.caption);
  out.open("thead").open("tr");
  for (const TableColumn& column : table.columns)
    column.right ? out.leaf("th", {{"scope", "col"}, {"class", "n"}}, column.title)
                 : out.leaf("th", {{"scope", "col"}}, column.title);
  out.close().close().open("tbody");
}

Markup html_table(const Table& table, const std::string& style) {
  Markup out;
  open_html_table(out, table, style);
  out.line();
  for (const TableRow& row : table.rows) {
    out.open("tr");
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string& of_column = table.columns[i].style;
      of_column.empty() ? out.open("td") : out.open("td", {{"class", of_column}});
      out.text(shown(row[i], table.exact)).close();
    }
    out.close().line();
  }
  out.close().close().close();
  return out;
}

}  // namespace trainyard::reports
