#include "reports/format/table.h"

#include <array>
#include <cmath>
#include <span>

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

bool is_strong(const TableValue& value) {
  return std::holds_alternative<Strong>(value);
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
  if (std::holds_alternative<std::string>(value) || is_strong(value)) return csv_field(shown(value));
  return shown(value, exact);
}

using Replacement = std::pair<std::string_view, std::string_view>;

// Replaces the first text of each pair by the second. Drops control characters, also line breaks.
std::string replaced(std::string_view text, std::span<const Replacement> pairs) {
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

// A format with markup: how it escapes text, and what it puts around a text in bold print.
struct Marks {
  std::string (*escape)(std::string_view);
  const char* bold;
  const char* end;
};
constexpr Marks markdown{markdown_escaped, "**", "**"};
constexpr Marks latex{latex_escaped, "\\textbf{", "}"};

std::vector<std::string> escaped_cells(const Table& table, const TableRow& row, const Marks& marks) {
  std::vector<std::string> cells;
  cells.reserve(table.columns.size());
  for (const TableValue& value : row) {
    const std::string text = marks.escape(shown(value, table.exact));
    cells.push_back(is_strong(value) ? marks.bold + text + marks.end : text);
  }
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
  return joined(escaped_cells(table, row, latex), {}, " & ") + " \\\\\n";
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
                        latex_column(left_column("", 1)), escaped_cells(table, row, latex).front());
  }
  return text;
}

Json json_of(const TableValue& value, bool exact) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* number = std::get_if<double>(&value)) return exact ? *number : rounded(*number);
  return shown(value);
}

Json json_object(const Table& table, const TableRow& row) {
  Json object = Json::object();
  for (std::size_t i = 0; i < row.size(); ++i) object[table.columns[i].title] = json_of(row[i], table.exact);
  return object;
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
  if (const auto* strong = std::get_if<Strong>(&value)) return strong->text;
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

std::string json_row(const Table& table, const TableRow& row) {
  return json_text(json_object(table, row), -1);
}

std::string json_table(const Table& table) {
  Json array = Json::array();
  for (const TableRow& row : table.rows) array.push_back(json_object(table, row));
  return json_text(array, 2);
}

std::string markdown_escaped(std::string_view text) {
  static constexpr std::array<Replacement, 12> pairs{{{"\n", " "},
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
  add(escaped_cells(table, titles(table), markdown));
  text += "|";
  for (const TableColumn& column : table.columns) text += column.right ? "---:|" : "---|";
  text += "\n";
  for (const TableRow& row : table.rows) {
    std::vector<std::string> cells = escaped_cells(table, row, markdown);
    if (is_heading(row, table)) cells.front() = "**" + cells.front() + "**";
    cells.resize(table.columns.size());
    add(cells);
  }
  for (const std::string& note : table.notes)
    text += (&note == &table.notes.front() ? "\n- " : "- ") + markdown_escaped(note) + "\n";
  return text;
}

std::string latex_escaped(std::string_view text) {
  static constexpr std::array<Replacement, 30> pairs{{{"\n", " "},         {"\\", "\\textbackslash{}"},
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

std::string latex_table(const Table& table, const std::string& label, LatexLayout layout) {
  std::string columns;
  for (const TableColumn& column : table.columns) columns += latex_column(column);
  const std::string caption = "\\caption{" + latex_escaped(table.caption) + "}\\label{" + label + "}";
  const std::string head = "\\toprule\n" + latex_row(table, titles(table)) + "\\midrule\n";
  if (layout == LatexLayout::long_table)  // only its first page has the caption, as a label must be unique
    return "% needs \\usepackage{array,booktabs,longtable}; for documents in one column\n"
           "{\\scriptsize\\setlength{\\tabcolsep}{1.5pt}\\setlength{\\LTcapwidth}{\\linewidth}\n"
           "\\begin{longtable}{@{}" +
           columns + "@{}}\n" + caption + " \\\\\n" + head + "\\endfirsthead\n" +
           fmt::format("\\multicolumn{{{}}}{{@{{}}l}}{{\\tablename~\\thetable{{}} (continued)}} \\\\\n",
                       table.columns.size()) +
           head + "\\endhead\n\\bottomrule\n\\endfoot\n" + latex_body(table) + "\\end{longtable}}\n";
  const bool wide = layout == LatexLayout::two_columns;
  const std::string environment = wide ? "table*" : "table";
  return "% needs \\usepackage{array,booktabs}; for documents in " +
         std::string(wide ? "two columns" : "one column") + "\n\\begin{" + environment + "}\n\\centering\n" +
         caption + "\n\\small\n\\begin{tabular}{@{}" + columns + "@{}}\n" + head + latex_body(table) +
         "\\bottomrule\n\\end{tabular}\n\\end{" + environment + "}\n";
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
    if (is_heading(row, table)) {
      out.leaf("th", {{"scope", "colgroup"}, {"colspan", std::to_string(table.columns.size())}},
               shown(row.front()));
      out.close().line();
      continue;
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string& of_column = table.columns[i].style;
      of_column.empty() ? out.open("td") : out.open("td", {{"class", of_column}});
      const std::string text = shown(row[i], table.exact);
      is_strong(row[i]) ? out.leaf("b", {}, text) : out.text(text);
      out.close();
    }
    out.close().line();
  }
  out.close().close().close();
  return out;
}

}  // namespace trainyard::reports
