// What a report says, before it is a page, a file or a table on a terminal: verdicts, figures and statements,
// all computed from the data.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/content/curves.h"
#include "reports/format/figure.h"
#include "reports/results/report_data.h"
#include "reports/results/sanity_checks.h"
#include "reports/verdicts/comparison.h"
#include "reports/verdicts/fairness.h"

namespace trainyard::reports {

struct CellFigures {
  Cell cell;
  std::vector<Figure> panels;
};

// `data` must outlive it.
struct Content {
  const ReportData* data = nullptr;
  std::vector<Comparison> comparisons;  // one per `[[compare]]`
  Palette palette;
  std::vector<CellFigures> figures;  // by the first comparison's cells, and others with runs of their own
  Figure breakdown;
  std::vector<Figure> data_figures;
  std::vector<std::pair<std::string, std::string>> provenance;  // "Host" → "lab-node-03"
  std::vector<Statement> fairness;
  std::vector<CheckedExpectation> expectations;
};

Content compose(const ReportData& data);

// In the order of the page.
std::vector<const Figure*> all_figures(const Content& content);

// The table in the published shape: which cells stand in which row, by validation metrics and train time.
struct PublishedTable {
  using Row = std::map<MetricKind, std::vector<std::string>>;  // names, marked where training contradicts
  std::vector<std::pair<std::string, Row>>
      rows;             // improves, no change, deteriorates, inconclusive, no verdict
  bool marked = false;  // some name carries the mark
};
inline constexpr const char* contradiction_mark = "†";

PublishedTable published_table(const Comparison& comparison);

}  // namespace trainyard::reports
