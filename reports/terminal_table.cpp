#include "reports/terminal_table.h"

#include <algorithm>

#include "models/joined.h"
#include "models/printable.h"
#include "reports/benchmark_table.h"
#include "reports/number_text.h"

namespace trainyard::reports {

namespace {

constexpr std::size_t terminal_width = 100;

// Control characters of names do not reach the terminal.
std::string shortened(const std::string& text, std::size_t width) {
  return models::shortened(models::printable_line(text), width);
}

using Row = std::vector<std::string>;

// Aligned, two spaces between columns; the columns in `right` are aligned right.
std::string aligned(const std::vector<Row>& rows, const std::vector<bool>& right, std::size_t widest_text) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], models::columns(shortened(row[i], widest_text)));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = shortened(row[i], widest_text);
      line += (i == 0 ? "" : "  ") +
              (right[i] ? models::padded_left(cell, widths[i]) : models::padded(cell, widths[i]));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string verdict_lines(const Comparison& comparison) {
  std::vector<Row> rows{
      {"model", comparison.compare.axis, "metric", "verdict", "effect", "95 % interval", "n"}};
  for (const CellVerdicts& judged : comparison.cells) {
    for (const Verdict& verdict : judged.verdicts) {
      std::string metric = verdict.metric;
      std::ranges::replace(metric, '-', ' ');
      rows.push_back({judged.cell.label, verdict.arm, metric, text_of(verdict.word), effect_text(verdict),
                      interval_text(verdict), std::to_string(verdict.n)});
    }
  }
  return aligned(rows, {false, false, false, false, true, true, true}, 22);
}

// Only of parameter studies; empty for others.
std::string benchmark_lines(const Comparison& comparison) {
  const Table table = benchmark_text(comparison);
  if (table.rows.empty()) return "";
  std::vector<Row> rows{
      {"percent of benchmark", comparison.compare.axis, "time per epoch", "accuracy", "loss"}};
  for (const std::vector<TableValue>& cells : table.rows) {
    Row& row = rows.emplace_back();
    for (const TableValue& cell : cells) row.push_back(std::get<std::string>(cell));
  }
  return aligned(rows, {false, false, true, true, true}, 30) + "\n";
}

// Names of one field of the published table, broken into lines of a column.
std::vector<std::string> wrapped(const std::vector<std::string>& names, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& name : names) {
    const std::string text = shortened(name, width - 1);
    if (!lines.empty() && models::columns(lines.back()) + 2 + models::columns(text) <= width) {
      lines.back() += "; " + text;
    } else {
      if (!lines.empty()) lines.back() += ";";
      lines.push_back(text);
    }
  }
  if (lines.empty()) lines.emplace_back("–");
  return lines;
}

std::string published_lines(const Comparison& comparison) {
  const PublishedTable table = published_table(comparison);
  constexpr std::size_t field = (terminal_width - 14) / 3 - 2;
  std::string text = models::padded("", 14) + models::padded("accuracy", field + 2) +
                     models::padded("loss", field + 2) + "time\n";
  for (const auto& [name, row] : table.rows) {
    std::vector<std::vector<std::string>> fields;
    std::size_t height = 1;
    for (const MetricKind kind : {MetricKind::accuracy, MetricKind::loss, MetricKind::time}) {
      const auto found = row.find(kind);
      fields.push_back(wrapped(found == row.end() ? std::vector<std::string>{} : found->second, field));
      height = std::max(height, fields.back().size());
    }
    for (std::size_t i = 0; i < height; ++i) {
      std::string line = models::padded(i == 0 ? name : "", 14);
      for (const std::vector<std::string>& lines : fields)
        line += models::padded(i < lines.size() ? lines[i] : "", field + 2);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  if (table.marked) text.append(contradiction_mark).append(" training says the opposite\n");
  return text;
}

}  // namespace

std::string terminal_table(const Content& content) {
  std::vector<std::string> blocks;
  for (const Comparison& comparison : content.comparisons) {
    if (has_verdicts(comparison)) {
      blocks.push_back("Verdicts against " + shortened(baseline_text(comparison.compare), 60) + "\n\n" +
                       verdict_lines(comparison) + "\n" + benchmark_lines(comparison) +
                       published_lines(comparison));
    } else {
      blocks.push_back(shortened(no_verdicts_text(comparison), 160) + "\n");
    }
  }
  std::string warnings;
  for (const Statement& statement : content.fairness)
    if (statement.bearing == Bearing::unfair) warnings += "warning: " + shortened(statement.text, 400) + "\n";
  if (!warnings.empty()) blocks.push_back(warnings);
  return models::joined(blocks, {}, "\n");
}

}  // namespace trainyard::reports
