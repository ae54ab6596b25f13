// The content of a report: verdicts, figures, tables and statements. It is composed once from the data. The
// writers of page, files and terminal add nothing.
#pragma once

#include <string>
#include <vector>

#include "reports/answer/answer.h"
#include "reports/content/curves.h"
#include "reports/content/paper_tables.h"
#include "reports/content/parameter_studies.h"
#include "reports/content/results_table.h"
#include "reports/format/figure.h"
#include "reports/results/report_data.h"
#include "reports/results/sanity_checks.h"
#include "reports/verdicts/comparison.h"
#include "reports/verdicts/fairness.h"

namespace trainyard::reports {

struct CellFigures {
  Cell cell;
  std::vector<Figure> panels;
  std::string lacking;  // "Not defined for this task: training accuracy."; empty if nothing is lacking
};

// `data` must outlive the content.
struct Content {
  const ReportData* data = nullptr;
  std::vector<Comparison> comparisons;  // one per `[[compare]]` of each experiment
  Answer answer;
  Palette palette;
  Results results;
  std::vector<PaperTable> tables;
  std::vector<CellFigures> figures;  // of the first comparison's cells, then of other cells with new runs
  std::vector<Study> studies;
  std::vector<Figure> scaling;  // speed-up and efficiency of all models
  Figure breakdown;
  std::vector<Figure> data_figures;
  std::vector<std::pair<std::string, std::string>> provenance;  // "Host" → "lab-node-03"
  std::vector<Statement> fairness;
  std::vector<CheckedExpectation> expectations;
};

Content compose(const ReportData& data);

// All figures in the order of the page.
std::vector<const Figure*> all_figures(const Content& content);

}  // namespace trainyard::reports
