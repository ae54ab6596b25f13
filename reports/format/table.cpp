#include "reports/format/table.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

std::string csv_value(const TableValue& value) {
  if (const auto* number = std::get_if<double>(&value))
    return std::isnan(*number) ? "" : plain_number(*number);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  return csv_field(std::get<std::string>(value));
}

// Replaces each of `pairs` and drops control characters, line breaks among them.
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

bool is_heading(const std::vector<TableValue>& row, const Table& table) {
  return row.size() == 1 && table.columns.size() > 1;
}

template <typename Escape>
std::vector<std::string> escaped_row(const std::vector<TableValue>& row, const Escape& escape) {
  std::vector<std::string> cells;
  cells.reserve(row.size());
  for (const TableValue& value : row) cells.push_back(escape(shown(value)));
  return cells;
}

std::string latex_row(const std::vector<TableValue>& row) {
  return joined(escaped_row(row, latex_escaped), {}, " & ") + " \\\\\n";
}

std::string latex_body(const Table& table) {
  std::string text;
  for (const std::vector<TableValue>& row : table.rows) {
    if (is_heading(row, table)) {
      text += std::string(&row == &table.rows.front() ? "" : "\\addlinespace\n") + "\\multicolumn{" +
              std::to_string(table.columns.size()) + "}{@{}" + left_column(1) + "@{}}{" +
              latex_escaped(shown(row.front())) + "} \\\\*\n";
    } else {
      text += latex_row(row);
    }
  }
  return text;
}

std::string latex_head(const Table& table) {
  const std::vector<TableValue> head(table.columns.begin(), table.columns.end());
  return "\\toprule\n" + latex_row(head) + "\\midrule\n";
}

std::string latex_column(double width, const char* alignment) {
  return ">{\\" + std::string(alignment) + "\\arraybackslash}p{" + plain_number(width) + "\\linewidth}";
}

}  // namespace

std::string left_column(double width) {
  return latex_column(width, "raggedright");
}

std::string right_column(double width) {
  return latex_column(width, "raggedleft");
}

std::string effects_columns() {
  return "@{}" + left_column(0.17) + left_column(0.195) + right_column(0.112) + right_column(0.174) +
         right_column(0.174) + right_column(0.094) + right_column(0.024) + "@{}";
}

std::string shown(const TableValue& value, int digits) {
  if (const auto* number = std::get_if<double>(&value)) return for_table(*number, digits);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  return std::get<std::string>(value);
}

std::string csv_field(const std::string& text) {
  const bool formula =
      !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  if (text.find_first_of("\",\r\n") == std::string::npos) return (formula ? "'" : "") + text;
  std::string quoted = formula ? "\"'" : "\"";
  for (const char character : text) quoted += character == '"' ? "\"\"" : std::string(1, character);
  return quoted + "\"";
}

std::string csv_text(const Table& table) {
  std::string text;
  const auto add = [&](const auto& cells) {
    bool first = true;
    for (const auto& cell : cells) {
      text += (first ? "" : ",") + csv_value(cell);
      first = false;
    }
    text += '\n';
  };
  add(table.columns);
  for (const std::vector<TableValue>& row : table.rows) add(row);
  return text;
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
  add(escaped_row({table.columns.begin(), table.columns.end()}, markdown_escaped));
  add(std::vector<std::string>(table.columns.size(), "---"));
  for (const std::vector<TableValue>& row : table.rows) {
    std::vector<std::string> cells = escaped_row(row, markdown_escaped);
    if (is_heading(row, table)) cells.front() = "**" + cells.front() + "**";
    cells.resize(table.columns.size());
    add(cells);
  }
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

std::string latex_table(const Table& table, const LatexOptions& options) {
  const std::string caption =
      "\\caption{" + latex_escaped(options.caption) + "}\\label{" + options.label + "}";
  const std::string head = latex_head(table);
  const std::string rows = latex_body(table);
  if (options.long_table)  // only the head of its first page has the caption: a label may stand only once
    return "% needs \\usepackage{array,booktabs,longtable}\n{\\scriptsize\\setlength{\\tabcolsep}{1.5pt}"
           "\\setlength{\\LTcapwidth}{\\linewidth}\n\\begin{longtable}{" +
           options.columns + "}\n" + caption + " \\\\\n" + head + "\\endfirsthead\n" + head +
           "\\endhead\n\\bottomrule\n\\endfoot\n" + rows + "\\end{longtable}}\n";
  return "% needs \\usepackage{array,booktabs}\n\\begin{table}\n\\centering\n" + caption +
         "\n\\small\n\\begin{tabular}{" + options.columns + "}\n" + head + rows +
         "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

}  // namespace trainyard::reports
