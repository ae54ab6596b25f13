#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reports/answer/answer.h"
#include "reports/answer/verdict_text.h"
#include "reports/answer/why.h"
#include "reports/content/paper_tables.h"
#include "reports/format/number_text.h"
#include "reports/format/table.h"
#include "reports/report/page.h"

namespace trainyard::reports {

namespace {

constexpr double picture_width = 120;
constexpr double middle = picture_width / 2;

// Interval and margin on one scale, zero in the middle. The verdict must have an estimate.
Markup interval_picture(const Verdict& verdict) {
  const double change = *verdict.effect;
  const Interval interval = *verdict.ci95;
  const Interval margin = verdict.margin.value_or(Interval{});
  const double reach = 1.25 * std::max(std::abs(margin.low), std::abs(margin.high));
  const double wanted = std::max({std::abs(interval.low), std::abs(interval.high), reach});
  // With few seeds, a wide interval would hide margin and effect: cut it at four times the larger of them.
  const double extent = std::min(wanted, 4 * std::max(std::abs(change), reach));
  const auto at = [&](double value) { return middle + (middle - 5) * std::clamp(value / extent, -1.0, 1.0); };
  Markup out;
  out.open("svg", {{"class", "mini"},
                   {"viewBox", "0 0 120 12"},
                   {"preserveAspectRatio", "none"},
                   {"aria-hidden", "true"}});
  out.empty("rect", {{"class", "fm"},
                     {"x", coordinate(at(margin.low))},
                     {"y", "0"},
                     {"width", coordinate(at(margin.high) - at(margin.low))},
                     {"height", "12"}});
  out.empty("path", {{"class", "fz"}, {"d", "M60 0V12"}});
  out.empty("path", {{"class", "fl"},
                     {"d", "M" + coordinate(at(interval.low)) + " 6H" + coordinate(at(interval.high))}});
  if (verdict.decision)
    for (const double end : {verdict.decision->interval.low, verdict.decision->interval.high})
      out.empty("path", {{"class", "fl"}, {"d", "M" + coordinate(at(end)) + " 3V9"}});
  out.empty(
      "rect",
      {{"class", "fd"}, {"x", coordinate(at(change) - 1.5)}, {"y", "2.5"}, {"width", "3"}, {"height", "7"}});
  out.close();
  return out;
}

// "n = 5, p < 0.0001 (better), margin a factor of 1.05; too few seeds …", for the tooltip.
std::string spoken(const Verdict& verdict) {
  const std::string p = p_with_hypothesis(verdict);
  return fmt::format("n = {}, p {}{}, margin {}{}", verdict.n, p.starts_with('<') ? "" : "= ", p,
                     margin_text(verdict), with_label("; ", verdict.reason.text));
}

// One verdict as a table cell: glyph, word, effect, interval, and a small picture of interval and margin. Colour is never
// the only sign. Null: not defined.
Markup verdict_cell(const Verdict* verdict) {
  Markup out;
  out.open("td");
  if (verdict == nullptr) {
    out.leaf("span", {{"class", "na"}}, "not defined").close();
    return out;
  }
  const VerdictBadge& badge = badge_of(verdict->kind);
  out.open("span", {{"class", std::string("v ") + badge.style}, {"title", spoken(*verdict)}});
  out.leaf("b", {}, fmt::format("{} {}", badge.glyph, badge.text));
  if (verdict->ci95) {
    out.open("i")
        .leaf("span", {}, effect_text(*verdict))
        .text(" ")
        .leaf("span", {}, interval_text(*verdict))
        .close();
    out.add(interval_picture(*verdict));
  } else {
    out.leaf("i", {}, verdict->reason.text);
  }
  for (const std::string& note : verdict->notes)
    if (note.starts_with(decided_after)) out.leaf("i", {}, note);
  if (verdict->later) out.leaf("i", {}, later_text(*verdict));
  for (const std::string& mark : marks_of(verdict->caveats)) out.leaf("i", {}, mark);
  out.close().close();
  return out;
}

void add_head(Markup& out, const experiments::Compare& compare, const std::vector<const Metric*>& columns) {
  out.open("thead")
      .open("tr")
      .leaf("th", {{"scope", "col"}}, "Model")
      .leaf("th", {{"scope", "col"}}, compare.axis);
  for (const Metric* metric : columns) {
    out.open("th", {{"scope", "col"}}).text(metric->title);
    out.leaf("small", {}, metric->higher_is_better() ? "higher is better" : "lower is better");
    out.leaf("small", {}, margin_of(*metric, compare.margins)).close();
  }
  out.close().close();
}

void add_rows(Markup& out, const Cell& cell, const Palette& palette, bool linked,
              const std::vector<const Metric*>& columns) {
  out.open("tbody");
  bool first = true;
  for (const Arm& arm : cell.arms) {
    out.open("tr");
    if (first) {
      out.open("th", {{"class", "m"}, {"scope", "rowgroup"}, {"rowspan", std::to_string(cell.arms.size())}});
      if (linked) {
        out.leaf("a", {{"class", "ml"}, {"href", "#cell-" + cell.slug}}, cell.label);
      } else {
        out.text(cell.label);
      }
      out.close();
    }
    first = false;
    const Series sample{"", "", "", palette.at(arm.value), 0, {}, std::nullopt};
    out.open("th", {{"scope", "row"}}).add(series_sample(sample)).text(arm.value);
    if (const std::string why = not_verified(arm); !why.empty())
      out.leaf("small", {{"title", why}}, "NOT VERIFIED");
    out.close();
    for (const Metric* metric : columns) out.add(verdict_cell(cell.find(arm.value, metric->name)));
    out.close();
  }
  out.close().line();
}

// Verdicts on metrics that only some tasks have: perplexity (translation, language-model), BLEU
// (translation), PSNR (reconstruction).
// One row per model and metric, one column per arm.

std::vector<const Metric*> task_metrics_of(const Cell& cell) {
  std::vector<const Metric*> found;
  for (const Metric& metric : metrics()) {
    const bool judges = std::ranges::any_of(
        cell.verdicts, [&](const Verdict& verdict) { return verdict.metric == metric.name; });
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

void add_rows(Markup& out, const Cell& cell, const std::vector<const Metric*>& metrics,
              const std::vector<std::string>& arms, const experiments::Margins& margins) {
  out.open("tbody");
  for (const Metric* metric : metrics) {
    out.open("tr");
    if (metric == metrics.front()) {
      out.leaf("th", {{"class", "m"}, {"scope", "rowgroup"}, {"rowspan", std::to_string(metrics.size())}},
               cell.label);
    }
    out.open("th", {{"scope", "row"}}).text(metric->title);
    out.leaf("small", {},
             fmt::format("{}, {}", metric->higher_is_better() ? "higher is better" : "lower is better",
                         margin_of(*metric, margins)));
    out.close();
    for (const std::string& arm : arms) out.add(verdict_cell(cell.find(arm, metric->name)));
    out.close();
  }
  out.close().line();
}

Markup page_task_metrics(const Comparison& comparison, const Palette& palette) {
  const std::vector<std::string> arms = arms_of(comparison);
  Markup rows;
  for (const Cell& cell : comparison.cells) {
    const std::vector<const Metric*> metrics = task_metrics_of(cell);
    if (!metrics.empty()) add_rows(rows, cell, metrics, arms, comparison.compare.margins);
  }
  Markup out;
  if (rows.str().empty()) return out;
  out.leaf("h3", {}, "Task-specific metrics");
  out.open("div", {{"class", "scroll"}}).open("table", {{"class", "verd tasks"}});
  out.leaf("caption", {{"class", "sr"}},
           "Verdicts on task-specific metrics: one row per model and metric, one column per arm");
  add_head(out, arms, palette);
  out.add(rows).close().close();
  return out;
}

Markup page_why(const Comparison& comparison) {
  Markup out;
  for (const Why& why : whys(comparison)) {
    if (why.is_silent()) continue;
    if (out.str().empty()) out.leaf("h3", {}, "Why");
    out.leaf("p", {{"class", "sub"}}, fmt::format("{} against {}:", why.arm, why.baseline));
    out.open("ul", {{"class", "remarks"}});
    for (const std::string& line : lines_of(why)) out.leaf("li", {}, line);
    out.close();
  }
  return out;
}

Markup numbers(const Comparison& comparison) {
  const Table table = effects_table(comparison).table;
  Markup out;
  out.open("details").leaf("summary", {}, "All numbers: intervals and p-values");
  return out.leaf("p", {{"class", "sub"}}, table.caption).add(html_table(table, "numbers")).close();
}

}  // namespace

Markup page_verdicts(const Comparison& comparison, const Palette& palette, bool first) {
  Markup out;
  out.open("section", {{"id", first ? "verdicts" : "verdicts" + comparison.slug_end}});
  out.leaf("h2", {}, heading(comparison));
  if (!has_verdicts(comparison)) {
    out.leaf("p", {{"class", "sub"}}, no_verdicts_text(comparison)).close();
    return out;
  }
  out.leaf("p", {{"class", "sub"}},
           "Shaded strip in a cell: the margin. A change inside it counts as no change. Bar: 95 % confidence "
           "interval of the change against the baseline. Two ticks: the interval that decides, if the bar "
           "contradicts the word. Inconclusive: the runs cannot decide. The "
           "remarks below the table give the number of seeds to plan, or the reason.");
  out.open("div", {{"class", "scroll"}}).open("table", {{"class", "verd"}});
  out.leaf("caption", {{"class", "sr"}}, "Verdict per model, arm and metric");
  const std::vector<const Metric*> columns = judged_in(comparison);
  add_head(out, comparison.compare, columns);
  for (const Cell& cell : comparison.cells) add_rows(out, cell, palette, first, columns);
  out.close().close();
  out.add(page_task_metrics(comparison, palette)).add(page_why(comparison));
  out.open("ul", {{"class", "remarks"}});
  for (const std::string& remark : grouped_remarks({comparison})) out.leaf("li", {}, remark);
  out.close().add(numbers(comparison)).close();
  return out;
}

}  // namespace trainyard::reports
