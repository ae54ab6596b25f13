// Verdicts on what only some tasks have (perplexity and BLEU of translations, PSNR of reconstructions): a row
// a metric of each model that has it, a column an arm.
#include <algorithm>

#include "reports/report/page.h"
#include "reports/report/verdict_cell.h"
#include "reports/verdicts/verdict_text.h"

namespace trainyard::reports {

namespace {

std::vector<std::string> arms_of(const Comparison& comparison) {
  std::vector<std::string> arms;
  for (const CellVerdicts& judged : comparison.cells) {
    for (const Arm& arm : judged.cell.arms) {
      if (std::ranges::find(arms, arm.value) == arms.end()) arms.push_back(arm.value);
    }
  }
  return arms;
}

std::vector<const Metric*> task_metrics_of(const CellVerdicts& judged) {
  std::vector<const Metric*> found;
  for (const Metric& metric : metrics()) {
    const bool judges = std::ranges::any_of(
        judged.verdicts, [&](const Verdict& verdict) { return verdict.metric == metric.name; });
    if (!metric.task.empty() && judges) found.push_back(&metric);
  }
  return found;
}

void add_head(Markup& out, const std::vector<std::string>& arms, const Palette& palette) {
  out.open("thead").open("tr");
  out.leaf("th", {{"scope", "col"}}, "Model").leaf("th", {{"scope", "col"}}, "Metric");
  for (const std::string& arm : arms) {
    const Series sample{"", "", "", palette.at(arm), 0, {}, std::nullopt};
    out.open("th", {{"scope", "col"}}).add(series_sample(sample)).text(arm).close();
  }
  out.close().close();
}

void add_rows(Markup& out, const CellVerdicts& judged, const std::vector<const Metric*>& metrics,
              const std::vector<std::string>& arms, const experiments::Margins& margins) {
  out.open("tbody");
  for (const Metric* metric : metrics) {
    out.open("tr");
    if (metric == metrics.front()) {
      out.leaf("th", {{"class", "m"}, {"scope", "rowgroup"}, {"rowspan", std::to_string(metrics.size())}},
               judged.cell.label);
    }
    out.open("th", {{"scope", "row"}}).text(metric->title);
    out.leaf("small", {},
             std::string(higher_is_better(metric->kind) ? "higher is better" : "lower is better") + ", " +
                 margin_of(*metric, margins));
    out.close();
    for (const std::string& arm : arms) out.add(verdict_cell(judged.find(arm, metric->name)));
    out.close();
  }
  out.close().line();
}

}  // namespace

Markup page_task_metrics(const Comparison& comparison, const Palette& palette) {
  const std::vector<std::string> arms = arms_of(comparison);
  Markup rows;
  for (const CellVerdicts& judged : comparison.cells) {
    const std::vector<const Metric*> metrics = task_metrics_of(judged);
    if (!metrics.empty()) add_rows(rows, judged, metrics, arms, comparison.compare.margins);
  }
  Markup out;
  if (rows.str().empty()) return out;
  out.leaf("h3", {}, "Metrics of single tasks");
  out.open("div", {{"class", "scroll"}}).open("table", {{"class", "verd tasks"}});
  out.leaf("caption", {{"class", "sr"}}, "Verdict per model and metric that only its task has, by arm");
  add_head(out, arms, palette);
  out.add(rows).close().close();
  return out;
}

}  // namespace trainyard::reports
