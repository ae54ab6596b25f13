// What publishing adds to a report: sentences, figures and tables. It is composed once. The
// writers of page, files and terminal add nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reports/answer/answer.h"
#include "reports/content/curves.h"
#include "reports/content/figures_of_all_models.h"
#include "reports/content/paper_tables.h"
#include "reports/document/report.h"
#include "reports/format/figure.h"

namespace trainyard::reports {

struct CellFigures {
  const Cell* cell = nullptr;
  std::vector<Figure> panels;
  std::string lacking;  // "Not defined for this task: training accuracy."; empty if nothing is lacking
};

struct Content {
  std::shared_ptr<const Report> report;
  Answer answer;
  Palette palette;
  Results results;
  std::vector<PaperTable> tables;
  std::vector<std::vector<Figure>> effects;  // forest plots, by comparison
  std::vector<CellFigures> figures;          // of the cells that are not `repeated`
  std::vector<Study> studies;
  std::vector<Figure> scaling;  // speed-up and efficiency of all models
  Figure breakdown;
  std::vector<Figure> timelines;  // of one step
  std::vector<Figure> data_figures;
};

Content compose(Report report);

// All figures in the order of the page.
std::vector<const Figure*> all_figures(const Content& content);

}  // namespace trainyard::reports
