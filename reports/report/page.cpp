#include "reports/report/page.h"

#include "reports/draw/assets.h"
#include "reports/draw/svg.h"

namespace trainyard::reports {

namespace {

// Nothing but our own style sheet and script may act, whatever stands in the data.
std::string policy(const std::string& style) {
  return "default-src 'none'; script-src '" + policy_hash(page_js()) + "'; style-src '" + policy_hash(style) +
         "'; img-src 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
         "trusted-types "
         "'none'";
}

void add_head(Markup& out, const Content& content, const std::string& style) {
  out.open("head").line();
  out.empty("meta", {{"charset", "utf-8"}}).line();
  out.empty("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", policy(style)}}).line();
  out.empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}}).line();
  out.leaf("title", {}, content.data->experiment + " · trainyard").line();
  out.open("style").verbatim(style).close().line();
  out.close().line();
}

}  // namespace

std::string page_html(const Content& content, const std::set<std::string>& formats) {
  const std::string style = std::string(page_css()) + std::string(figure_css());
  Markup out;
  out.verbatim("<!DOCTYPE html>\n").open("html", {{"lang", "en"}}).line();
  add_head(out, content, style);
  out.open("body").line();
  out.leaf("a", {{"class", "skip"}, {"href", "#verdicts"}}, "Skip to the verdicts").line();
  out.add(page_top(content)).line().add(page_navigation(content)).line();
  out.open("main").line();
  for (const Comparison& comparison : content.comparisons) {
    out.add(page_verdicts(comparison, content.palette, &comparison == &content.comparisons.front())).line();
    out.add(page_effects(comparison, formats)).line();
  }
  out.add(page_expectations(content)).line();
  for (const CellFigures& figures : content.figures) out.add(page_panels(figures, formats)).line();
  out.add(page_breakdown(content.breakdown, formats)).line();
  out.add(page_data(content, formats)).line();
  out.add(page_runs(content)).line();
  out.close().line();
  out.leaf("footer", {},
           "Made by trainyard from the results database alone; the same database gives the same page.")
      .line();
  out.open("div", {{"id", "tip"}, {"hidden", "hidden"}}).close();
  out.open("div", {{"id", "live"}, {"class", "sr"}, {"aria-live", "polite"}}).close().line();
  out.open("script").verbatim(page_js()).close().line();
  out.close().close().line();
  return out.str();
}

Markup series_sample(const Series& series) {
  Markup out;
  out.open("svg", {{"class", "sample"}, {"width", "20"}, {"height", "10"}, {"aria-hidden", "true"}});
  out.open("g", {{"class", series_class(series)}}).empty("path", {{"class", "l"}, {"d", "M0 5H20"}}).close();
  out.close();
  return out;
}

Markup guide_sample(const std::string& colour) {
  Markup out;
  out.open("svg", {{"class", "sample"}, {"width", "20"}, {"height", "10"}, {"aria-hidden", "true"}});
  out.open("g", {{"class", "gd gd-" + colour}}).empty("path", {{"class", "gl"}, {"d", "M0 5H20"}}).close();
  out.close();
  return out;
}

}  // namespace trainyard::reports
