// The verdicts as tables for papers (LaTeX, Markdown) and programs (CSV), and parameter studies in percent of
// the baseline.
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

// Models by verdict on validation metrics and train time, the table that the published study uses.
struct PublishedTable {
  using Row = std::map<MetricKind, std::vector<std::string>>;  // names, marked if training contradicts
  std::vector<std::pair<std::string, Row>>
      rows;             // improves, no change, deteriorates, inconclusive, no verdict
  bool marked = false;  // a name has the mark
};
inline constexpr const char* contradiction_mark = "†";

PublishedTable published_table(const Comparison& comparison);

struct PaperTable {
  std::string slug;         // file name: "verdicts"
  bool long_table = false;  // in small print, over several pages
  Table table;
};

// The LaTeX files of a table by their names: "verdicts" for documents in one column, and
// "verdicts-two-column".
std::vector<std::pair<std::string, std::string>> latex_files(const PaperTable& paper);

// Tables per comparison: models by verdict, all effects with intervals and, for a parameter study, values in
// percent of the baseline.
std::vector<PaperTable> paper_tables(const std::vector<Comparison>& comparisons);

// All verdicts of all comparisons with their numbers: effects and intervals in `unit`, p after Holm.
Table verdict_numbers(const std::vector<Comparison>& comparisons);

// Final metrics, one row per run.
Table run_numbers(const ReportData& data);

// Columns of a table of effects. A row of one text is the heading of an arm.
std::vector<TableColumn> effect_columns();

// A value in percent of the baseline, for parameter studies: times, validation accuracies and losses.
struct Percent {
  double value = 100;
  std::optional<Interval> interval;  // 95 %; empty for the baseline and for a single pair
};

struct BenchmarkRow {
  std::string cell;                        // "MLP, epochs 1"
  std::string value;                       // of the axis: "4"
  int n = 0;                               // pairs; 0: the baseline
  std::map<std::string, Percent> percent;  // by published metric
};

// Whether the comparison is not of strategies, models or groups.
bool is_parameter_study(const Comparison& comparison);

// - Times are geometric means of ratios.
// - Differences of accuracies and small losses are divided by the baseline's mean.
// - The baseline is the first row of its cell. Values that cannot be compared are left out.
std::vector<BenchmarkRow> benchmark_table(const Comparison& comparison);

// The same as text, "150.0 [148.1, 151.9]", with a caption. No rows if it is not a parameter study.
Table benchmark_text(const Comparison& comparison);

}  // namespace trainyard::reports
