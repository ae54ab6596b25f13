// All that a report says: verdicts, figures, tables and statements. It is composed once from the data. Page,
// files and terminal only write it.
#pragma once

#include <string>
#include <vector>

#include "reports/content/curves.h"
#include "reports/content/paper_tables.h"
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
  std::vector<PaperTable> tables;
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

}  // namespace trainyard::reports
