// The panels of a cell and the time breakdown, each with its query and data.
#include "reports/page.h"
#include "reports/svg.h"

namespace trainyard::reports {

namespace {

void add_details(Markup& out, const Figure& figure, const std::set<std::string>& formats) {
  out.open("details").leaf("summary", {}, "Query, data, files");
  out.leaf("pre", {}, figure.sql);
  if (!formats.empty()) {
    out.open("p", {{"class", "said"}});
    for (const char* format : {"svg", "png"}) {
      if (formats.count(format) == 0) continue;
      const std::string file = "figures/" + figure.slug + "." + format;
      out.leaf("a", {{"href", file}}, file).text(" ");
    }
    out.close();
  }
  out.open(
      "div",
      {{"class", "dt"}, {"tabindex", "0"}, {"role", "region"}, {"aria-label", "Data of " + figure.title}});
  out.add(html_table(figure.data)).close().close();
}

void add_figure(Markup& out, const Figure& figure, const std::set<std::string>& formats) {
  out.open("figure", {{"id", "figure-" + figure.slug}});
  out.open("figcaption").leaf("b", {}, figure.title);
  if (!figure.unit.empty() && figure.missing.empty()) out.text(" ").leaf("span", {}, figure.unit);
  out.close();
  if (!figure.missing.empty()) {
    out.leaf("div", {{"class", "empty"}}, figure.missing).close();
    return;
  }
  out.add(page_svg(figure));
  out.leaf("p", {{"class", "said"}}, figure.caption);
  add_details(out, figure, formats);
  out.close().line();
}

std::string dataset_of(const Cell& cell) {
  const Observation* first = !cell.baseline.runs.empty() ? &cell.baseline.runs.front() : nullptr;
  if (first == nullptr) {
    for (const Arm& arm : cell.arms) {
      if (!arm.runs.empty()) first = &arm.runs.front();
    }
  }
  if (first == nullptr) return "";
  const db::RunSummary& run = *first->run;
  return run.dataset +
         (run.data_source != run.dataset && !run.data_source.empty() ? ", stand-in " + run.data_source : "");
}

}  // namespace

Markup page_panels(const CellFigures& figures, const std::set<std::string>& formats) {
  Markup out;
  out.open("section", {{"class", "model"}, {"id", "cell-" + figures.cell.slug}});
  out.open("h2").text(figures.cell.label).leaf("small", {}, dataset_of(figures.cell)).close();
  out.open("div", {{"class", "printkeys"}});
  for (const Series& series : legend(figures.panels)) {
    out.open("span").add(series_sample(series)).text(series.label).close();
  }
  out.close().open("div", {{"class", "grid"}}).line();
  for (const Figure& figure : figures.panels) add_figure(out, figure, formats);
  out.close().close();
  return out;
}

Markup page_breakdown(const Figure& breakdown, const std::set<std::string>& formats) {
  Markup out;
  out.open("section", {{"id", "time"}}).leaf("h2", {}, breakdown.title);
  if (!breakdown.missing.empty()) {
    out.leaf("p", {{"class", "sub"}}, breakdown.missing).close();
    return out;
  }
  out.leaf("p", {{"class", "sub"}},
           "Percent of the baseline's epoch, seconds at the ends of the bars; the dashed line is parity. " +
               breakdown.caption);
  out.open("ul", {{"class", "plegend"}});
  for (const Part& part : breakdown.parts) {
    out.open("li").open("svg", {{"width", "14"}, {"height", "12"}, {"aria-hidden", "true"}});
    out.empty("rect", {{"class", "p-" + part.colour}, {"width", "14"}, {"height", "12"}});
    out.close().text(part.name).close();
  }
  out.close().open("figure").open("div", {{"class", "scroll"}}).open("div", {{"class", "wide"}});
  out.add(page_svg(breakdown)).close().close();
  add_details(out, breakdown, formats);
  out.close().close();
  return out;
}

}  // namespace trainyard::reports
