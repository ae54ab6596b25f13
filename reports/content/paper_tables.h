// The verdicts as tables: for papers (LaTeX, Markdown) and for machines (CSV), and each value in percent of
// its benchmark.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/format/table.h"
#include "reports/results/metrics.h"
#include "reports/results/report_data.h"
#include "reports/verdicts/comparison.h"

namespace trainyard::reports {

// The table in the published shape: the row of each cell, by validation metrics and train time.
struct PublishedTable {
  using Row = std::map<MetricKind, std::vector<std::string>>;  // names, marked where training contradicts
  std::vector<std::pair<std::string, Row>>
      rows;             // improves, no change, deteriorates, inconclusive, no verdict
  bool marked = false;  // some name carries the mark
};
inline constexpr const char* contradiction_mark = "†";

PublishedTable published_table(const Comparison& comparison);

struct PaperTable {
  std::string slug;         // file name: "verdicts"
  bool long_table = false;  // many rows: small print, over pages
  Table table;
};

// For each comparison the table in the published shape, every effect with its intervals and, of a parameter
// study, the percent of its benchmark, as text.
std::vector<PaperTable> paper_tables(const std::vector<Comparison>& comparisons);

// Every verdict of every comparison with its numbers: effects and intervals in `unit`, p after Holm.
Table verdict_numbers(const std::vector<Comparison>& comparisons);

// What each run ended with, a row a run.
Table run_numbers(const ReportData& data);

// Head of a long table of effects. A row of one text heads the rows of an arm.
std::vector<TableColumn> effect_columns();

// «Percent of benchmark»: what a parameter study publishes. Each value of the axis beside the baseline, which
// is 100: times, accuracies and losses of validation as a share of the baseline's, with 95 % intervals.

struct Percent {
  double value = 100;
  std::optional<Interval> interval;  // empty for the baseline and for a single pair
};

struct BenchmarkRow {
  std::string cell;                        // "MLP, epochs 1"
  std::string value;                       // of the axis: "4"
  int n = 0;                               // pairs; 0: the baseline
  std::map<std::string, Percent> percent;  // by metric, of those that are published
};

// Is it a study of a parameter: a comparison of anything but strategies and models?
bool is_parameter_study(const Comparison& comparison);

// Times are geometric means of ratios. Differences of accuracies, and of small losses, are divided by the
// baseline's mean. Cells in the order of the comparison, the baseline first in each; values that cannot be
// compared are left out.
std::vector<BenchmarkRow> benchmark_table(const Comparison& comparison);

// The same as text, "150.0 [148.1, 151.9]", under "Percent of the benchmark: batch 128 is 100; with 95 %
// intervals."; without rows for what is no parameter study.
Table benchmark_text(const Comparison& comparison);

}  // namespace trainyard::reports
