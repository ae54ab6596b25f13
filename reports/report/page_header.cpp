// The top of the page: what was compared, where the numbers come from, what is fair about it; and the
// navigation, which is the legend as well.
#include <algorithm>

#include "reports/draw/svg.h"
#include "reports/report/page.h"

namespace trainyard::reports {

namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

std::string lede(const Content& content) {
  const Comparison& comparison = content.comparisons.front();
  std::vector<std::string> arms;
  std::vector<std::string> cells;
  for (const CellVerdicts& judged : comparison.cells) {
    for (const Arm& arm : judged.cell.arms) {
      if (std::ranges::find(arms, arm.value) == arms.end()) arms.push_back(arm.value);
    }
    cells.push_back(judged.cell.label);
  }
  const std::string what = cells.size() <= 6 ? listed(cells) : std::to_string(cells.size()) + " cells";
  return "What " + (arms.empty() ? "each " + comparison.compare.axis : listed(arms)) +
         (arms.size() > 1 ? " do" : " does") + " to the training of " + what + ", against " +
         baseline_text(comparison.compare);
}

const char* class_of(Bearing bearing) {
  return bearing == Bearing::fair ? "yes" : bearing == Bearing::unfair ? "not" : "note";
}

std::vector<Series> page_legend(const Content& content) {
  std::vector<Figure> all;
  for (const CellFigures& figures : content.figures) {
    std::ranges::copy(figures.panels, std::back_inserter(all));
  }
  return legend(all);
}

}  // namespace

Markup page_top(const Content& content) {
  Markup out;
  out.open("header", {{"class", "top"}});
  out.leaf("p", {{"class", "sweep"}}, "trainyard report");
  out.leaf("h1", {}, content.data->experiment).leaf("p", {{"class", "lede"}}, lede(content));
  out.open("div", {{"class", "meta"}}).open("div").leaf("h2", {}, "Provenance").open("dl");
  for (const auto& [name, value] : content.provenance) out.leaf("dt", {}, name).leaf("dd", {}, value);
  out.close().close();
  out.open("div").leaf("h2", {}, "What makes this comparison fair, and what does not");
  out.open("ul", {{"class", "fair"}});
  for (const Statement& statement : content.fairness) {
    out.leaf("li", {{"class", class_of(statement.bearing)}}, statement.text);
  }
  out.close().close().close().close();
  return out;
}

Markup page_navigation(const Content& content) {
  Markup out;
  out.open("nav", {{"aria-label", "Sections and series"}}).open("div");
  out.leaf("a", {{"href", "#verdicts"}}, "Verdicts");
  for (const CellFigures& figures : content.figures) {
    out.leaf("a", {{"href", "#cell-" + figures.cell.slug}}, figures.cell.label);
  }
  out.leaf("a", {{"href", "#time"}}, "Time");
  if (!content.data_figures.empty()) out.leaf("a", {{"href", "#data"}}, "Data");
  out.leaf("a", {{"href", "#all-runs"}}, "Runs");
  out.open("span", {{"class", "keys"}, {"role", "group"}, {"aria-label", "Show or hide series"}});
  for (const Series& series : page_legend(content)) {
    out.open("button", {{"type", "button"},
                        {"data-key", series_class(series)},
                        {"data-label", series.label},
                        {"aria-pressed", "true"}});
    out.add(series_sample(series)).text(series.label).close();
  }
  if (content.data->plan.published) {
    const std::string label = "Published";
    out.open("button", {{"type", "button"},
                        {"data-key", "gd gd-published"},
                        {"data-label", label},
                        {"aria-pressed", "true"}});
    out.add(guide_sample("published")).text(label).close();
  }
  out.close();
  out.open("span", {{"class", "js"}});
  out.leaf("button", {{"id", "theme"}, {"type", "button"}, {"class", "tool"}}, "Theme: auto");
  out.leaf("button", {{"id", "print"}, {"type", "button"}, {"class", "tool"}}, "Print");
  out.close().close().close();
  return out;
}

}  // namespace trainyard::reports
