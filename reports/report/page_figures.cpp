// The panels of a cell and the time breakdown, each with its query and data.
#include <array>
#include <utility>

#include "reports/draw/svg.h"
#include "reports/format/table_text.h"
#include "reports/report/page.h"

namespace trainyard::reports {

namespace {

// Links to the files that stand beside the page.
void add_files(Markup& out, const Figure& figure, const std::set<std::string>& formats) {
  static constexpr std::array<std::pair<const char*, const char*>, 5> files{
      {{"svg", "svg"}, {"png", "png"}, {"pdf", "pdf"}, {"csv", "csv"}, {"vega-lite", "vl.json"}}};
  Markup links;
  for (const auto& [format, extension] : files) {
    if (formats.count(format) != 0)
      links.leaf("a", {{"href", "figures/" + figure.slug + "." + extension}}, extension).text(" ");
  }
  if (!links.str().empty()) out.open("p", {{"class", "said"}}).text(figure.slug + ": ").add(links).close();
}

void add_details(Markup& out, const Figure& figure, const std::set<std::string>& formats) {
  out.open("details").leaf("summary", {}, "Query and data");
  out.leaf("pre", {}, figure.sql);
  add_files(out, figure, formats);
  out.open("pre", {{"class", "csv"},
                   {"tabindex", "0"},
                   {"aria-label", "Data of " + figure.title},
                   {"data-file", figure.slug + ".csv"}});
  out.text(csv_text(figure.data)).close().close();
}

void add_figure(Markup& out, const Figure& figure, const std::set<std::string>& formats,
                const std::string& before = "") {
  out.open("figure", {{"id", "figure-" + figure.slug}});
  out.open("figcaption").leaf("b", {}, before + figure.title);
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

Markup page_effects(const Comparison& comparison, const std::set<std::string>& formats) {
  Markup out;
  if (comparison.effects.empty()) return out;
  out.open("section", {{"id", comparison.effects.front().slug}});
  out.leaf("h2", {}, comparison.effects.front().title);
  out.leaf("p", {{"class", "sub"}}, comparison.effects.front().caption);
  for (const Figure& figure : comparison.effects) {
    out.open("figure", {{"id", "figure-" + figure.slug}}).open("div", {{"class", "scroll"}});
    out.open("div", {{"class", "wide"}}).add(page_svg(figure)).close().close();
    add_details(out, figure, formats);
    out.close().line();
  }
  out.close();
  return out;
}

Markup page_data(const Content& content, const std::set<std::string>& formats) {
  Markup out;
  if (content.data_figures.empty()) return out;
  out.open("section", {{"id", "data"}}).leaf("h2", {}, "Data").open("div", {{"class", "grid"}}).line();
  for (const Figure& figure : content.data_figures) add_figure(out, figure, formats, figure.subject + " · ");
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
  out.open("ul", {{"class", "remarks"}});
  for (const std::string& remark : breakdown.remarks) out.leaf("li", {}, remark);
  out.close();
  add_details(out, breakdown, formats);
  out.close().close();
  return out;
}

}  // namespace trainyard::reports
