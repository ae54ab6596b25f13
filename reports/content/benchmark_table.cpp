#include "reports/content/benchmark_table.h"

#include <algorithm>

#include "reports/format/number_text.h"
#include "reports/results/metrics.h"

namespace trainyard::reports {

namespace {

// In percent of the baseline: a ratio is one already, a difference is taken relative to the baseline's mean.
double percent_of(const Verdict& verdict, double change) {
  if (verdict.scale == Scale::log_ratio) return 100 + change;
  const double unit = shown_scale(find_metric(verdict.metric).kind);  // a change in points of a fraction
  return 100 * (1 + change / (unit * verdict.baseline_mean));
}

std::optional<Percent> percent_for(const Verdict& verdict) {
  if (verdict.word == Word::not_comparable || verdict.word == Word::broken) return std::nullopt;
  if (verdict.difference)
    return Percent{percent_of(verdict, as_change(verdict.scale, *verdict.difference)), {}};
  if (!verdict.estimate) return std::nullopt;
  const Change change = change_of(verdict, 0.95);
  return Percent{percent_of(verdict, change.value), Interval{percent_of(verdict, change.interval.low),
                                                             percent_of(verdict, change.interval.high)}};
}

BenchmarkRow row_for(const CellVerdicts& judged, const std::string& arm) {
  BenchmarkRow row{judged.cell.label, arm, 0, {}};
  for (const Verdict& verdict : judged.verdicts) {
    if (verdict.arm != arm || !find_metric(verdict.metric).published) continue;
    const auto percent = percent_for(verdict);
    if (!percent) continue;
    row.percent[verdict.metric] = *percent;
    row.n = std::max(row.n, verdict.n);
  }
  return row;
}

std::string percent_text(const BenchmarkRow& row, const char* metric) {
  const auto found = row.percent.find(metric);
  if (found == row.percent.end()) return "–";
  const Percent& percent = found->second;
  if (!percent.interval) return fixed(percent.value, 1);
  return fixed(percent.value, 1) + " [" + fixed(percent.interval->low, 1) + ", " +
         fixed(percent.interval->high, 1) + "]";
}

}  // namespace

bool is_parameter_study(const Comparison& comparison) {
  return comparison.compare.axis != "strategy" && comparison.compare.axis != "model" &&
         comparison.compare.axis != "group";
}

std::vector<BenchmarkRow> benchmark_table(const Comparison& comparison) {
  std::vector<BenchmarkRow> rows;
  for (const CellVerdicts& judged : comparison.cells) {
    BenchmarkRow baseline{judged.cell.label, judged.cell.baseline.value, 0, {}};
    std::vector<BenchmarkRow> arms;
    for (const Arm& arm : judged.cell.arms) {
      BenchmarkRow row = row_for(judged, arm.value);
      if (row.percent.empty()) continue;
      for (const auto& [metric, percent] : row.percent) baseline.percent[metric] = {};
      arms.push_back(std::move(row));
    }
    if (arms.empty()) continue;
    rows.push_back(std::move(baseline));
    rows.insert(rows.end(), arms.begin(), arms.end());
  }
  return rows;
}

std::string benchmark_caption(const Comparison& comparison) {
  return "Percent of the benchmark: " + baseline_text(comparison.compare) + " is 100; with 95 % intervals.";
}

Table benchmark_text(const Comparison& comparison) {
  Table table;
  if (!is_parameter_study(comparison)) return table;
  table.columns = {"Model", comparison.compare.axis, "Time per epoch", "Accuracy", "Loss"};
  for (const BenchmarkRow& row : benchmark_table(comparison))
    table.rows.push_back({row.cell, row.value, percent_text(row, "train-seconds"),
                          percent_text(row, "validation-accuracy"), percent_text(row, "validation-loss")});
  return table;
}

}  // namespace trainyard::reports
