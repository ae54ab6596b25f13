// The verdicts as tables for papers (LaTeX, Markdown) and programs (CSV).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/document/metrics.h"
#include "reports/document/report.h"
#include "reports/format/table.h"

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

// Tables per comparison: models by verdict, and all effects with intervals.
std::vector<PaperTable> paper_tables(const std::vector<Comparison>& comparisons);

// All verdicts of all comparisons with their numbers: effects and intervals in `unit`, p after Holm.
Table verdict_numbers(const std::vector<Comparison>& comparisons);

// Final metrics, one row per run.
Table run_numbers(const Report& report);

double value_in(const RunRow& run, const std::string& column);         // a final value; NaN: it has none
std::string setting_text(const RunRow& run, const std::string& name);  // without quotes; empty: it has none

// Columns of a table of effects. A row of one text is the heading of an arm.
std::vector<TableColumn> effect_columns();

}  // namespace trainyard::reports
