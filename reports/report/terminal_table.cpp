#include "reports/report/terminal_table.h"

#include <algorithm>

#include "base/joined.h"
#include "base/printable.h"
#include "reports/content/benchmark_table.h"
#include "reports/format/aligned_text.h"
#include "reports/format/number_text.h"
#include "reports/verdicts/verdict_text.h"

namespace trainyard::reports {

namespace {

std::string verdict_lines(const Comparison& comparison, std::size_t width) {
  std::vector<TextRow> rows{
      {"model", comparison.compare.axis, "metric", "verdict", "effect", "95 % interval", "n"}};
  for (const CellVerdicts& judged : comparison.cells) {
    for (const Verdict& verdict : judged.verdicts) {
      std::string metric = verdict.metric;
      std::ranges::replace(metric, '-', ' ');
      rows.push_back({judged.cell.label, verdict.arm, metric, text_of(verdict.word), effect_text(verdict),
                      interval_text(verdict), std::to_string(verdict.n)});
    }
  }
  return aligned_rows(rows, {false, false, false, false, true, true, true}, width);
}

// Only of parameter studies; empty for others.
std::string benchmark_lines(const Comparison& comparison, std::size_t width) {
  const Table table = benchmark_text(comparison);
  if (table.rows.empty()) return "";
  std::vector<TextRow> rows{
      {"percent of benchmark", comparison.compare.axis, "time per epoch", "accuracy", "loss"}};
  for (const std::vector<TableValue>& cells : table.rows) {
    TextRow& row = rows.emplace_back();
    for (const TableValue& cell : cells) row.push_back(std::get<std::string>(cell));
  }
  return aligned_rows(rows, {false, false, true, true, true}, width) + "\n";
}

constexpr std::size_t name_width = 14;  // of the rows of the published table
constexpr std::size_t usual_field = 26;

// Of each of the three fields: on a terminal a third of it, in a file as wide as the longest name.
std::size_t field_width(const PublishedTable& table, std::size_t width) {
  if (width > 0) return std::max((width - std::min(width, name_width)) / 3, std::size_t{6}) - 2;
  std::size_t field = usual_field;
  for (const auto& [name, row] : table.rows)
    for (const auto& [kind, names] : row)
      for (const std::string& each : names)
        field = std::max(field, models::columns(models::printable_line(each)) + 1);
  return field;
}

// Names of one field, broken into lines of a column; a name that is wider is wrapped.
std::vector<std::string> field_lines(const std::vector<std::string>& names, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& name : names) {
    const std::string text = models::printable_line(name);
    if (!lines.empty() && models::columns(lines.back()) + 3 + models::columns(text) <= width) {
      lines.back() += "; " + text;
      continue;
    }
    if (!lines.empty()) lines.back() += ";";
    for (std::string& line : wrapped(text, width - 1)) lines.push_back(std::move(line));
  }
  if (lines.empty()) lines.emplace_back("–");
  return lines;
}

std::string published_lines(const Comparison& comparison, std::size_t width) {
  const PublishedTable table = published_table(comparison);
  const std::size_t field = field_width(table, width);
  std::string text =
      paragraph("Models by verdict: validation accuracy, validation loss, training time", width);
  text += "\n" + models::padded("", name_width) + models::padded("accuracy", field + 2) +
          models::padded("loss", field + 2) + "time\n";
  for (const auto& [name, row] : table.rows) {
    std::vector<std::vector<std::string>> fields;
    std::size_t height = 1;
    for (const MetricKind kind : {MetricKind::accuracy, MetricKind::loss, MetricKind::time}) {
      const auto found = row.find(kind);
      fields.push_back(field_lines(found == row.end() ? std::vector<std::string>{} : found->second, field));
      height = std::max(height, fields.back().size());
    }
    for (std::size_t i = 0; i < height; ++i) {
      std::string line = models::padded(i == 0 ? name : "", name_width);
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

std::string terminal_table(const Content& content, std::size_t width) {
  std::vector<std::string> blocks;
  for (const Comparison& comparison : content.comparisons) {
    if (has_verdicts(comparison)) {
      blocks.push_back(paragraph("Verdicts against " + baseline_text(comparison.compare), width) + "\n" +
                       verdict_lines(comparison, width) + "\n" + benchmark_lines(comparison, width) +
                       published_lines(comparison, width));
    } else {
      blocks.push_back(paragraph(no_verdicts_text(comparison), width));
    }
  }
  std::string warnings;
  for (const Statement& statement : content.fairness)
    if (statement.bearing == Bearing::unfair) warnings += paragraph("warning: " + statement.text, width);
  if (!warnings.empty()) blocks.push_back(warnings);
  return models::joined(blocks, {}, "\n");
}

}  // namespace trainyard::reports
