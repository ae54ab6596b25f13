#include "reports/content/content.h"

#include <set>

#include "reports/content/panels.h"
#include "reports/content/scaling.h"

namespace trainyard::reports {

namespace {

void add_effects(Content& content) {
  std::set<std::string> slugs;
  for (const Comparison& comparison : content.report->comparisons) {
    std::string slug = "effects-" + slug_of(comparison.experiment + " " + comparison.compare.axis);
    if (!slugs.insert(slug).second) slug += "-against-" + slug_of(comparison.compare.baseline);
    content.effects.push_back(make_effects(*content.report, comparison, content.palette, slug));
  }
}

}  // namespace

Content compose(Report whole) {
  Content content;
  content.report = std::make_shared<const Report>(std::move(whole));
  const Report& report = *content.report;
  content.tables = paper_tables(report);
  content.results = make_results(report.comparisons);
  content.palette = make_palette(report.comparisons);
  add_effects(content);
  for (const Comparison& comparison : report.comparisons)
    for (const Cell& cell : comparison.cells) {
      if (cell.repeated) continue;
      std::vector<Figure> panels = make_panels(report, cell, content.palette);
      std::string lacking = lacking_text(report, cell, panels);
      content.figures.push_back({&cell, std::move(panels), std::move(lacking)});
    }
  content.scaling = make_scaling_of_all(report, content.palette);
  content.studies = make_parameter_studies(report, content.palette);
  content.breakdown = make_time_breakdown(report);
  content.timelines = make_timelines(report);
  content.data_figures = make_data_figures(report);
  content.answer = make_answer(report);
  return content;
}

std::vector<const Figure*> all_figures(const Content& content) {
  std::vector<const Figure*> figures;
  const auto add = [&](const std::vector<Figure>& some) {
    for (const Figure& figure : some) figures.push_back(&figure);
  };
  for (const std::vector<Figure>& effects : content.effects) add(effects);
  for (const Study& study : content.studies) add(study.figures);
  add(content.scaling);
  for (const CellFigures& cell : content.figures) add(cell.panels);
  figures.push_back(&content.breakdown);
  add(content.timelines);
  add(content.data_figures);
  return figures;
}

}  // namespace trainyard::reports
