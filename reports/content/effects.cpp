#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/answer/verdict_text.h"
#include "reports/content/figures_of_all_models.h"
#include "reports/content/scaling.h"

namespace trainyard::reports {

namespace {

std::size_t most_columns(const Metric& metric) {
  return metric.task.empty() ? 3 : 4;
}

bool any_estimate(const Comparison& comparison, const Metric& metric) {
  return std::ranges::any_of(comparison.cells, [&](const Cell& cell) {
    return std::ranges::any_of(
        cell.verdicts, [&](const Verdict& verdict) { return verdict.metric == metric.name && verdict.ci95; });
  });
}

std::vector<const Metric*> drawn_metrics(const Comparison& comparison) {
  std::vector<const Metric*> drawn;
  for (const Metric& metric : metrics()) {
    if (any_estimate(comparison, metric)) drawn.push_back(&metric);
  }
  std::ranges::stable_sort(drawn, {},
                           [](const Metric* metric) { return std::pair(!metric->published, metric->task); });
  return drawn;
}

std::optional<Effect> effect_of(const Verdict* verdict, Scale scale) {
  if (verdict == nullptr || !verdict->ci95) return std::nullopt;
  const Interval margin = verdict->margin.value_or(Interval{});
  return Effect{*verdict->effect,
                verdict->ci95->low,
                verdict->ci95->high,
                verdict->decision
                    ? std::vector{verdict->decision->interval.low, verdict->decision->interval.high}
                    : std::vector<double>(),
                margin.low,
                margin.high,
                effect_text(*verdict),
                text_of(verdict->kind) + marks_text(verdict->caveats),
                badge_of(verdict->kind).glyph,
                verdict->scale == scale};
}

// The most frequent scale of the metric's verdicts. Small losses are compared by differences, others by
// ratios.
Scale usual_scale(const Comparison& comparison, const Metric& metric) {
  std::map<Scale, int> counts;
  for (const Cell& cell : comparison.cells) {
    for (const Verdict& verdict : cell.verdicts)
      if (verdict.metric == metric.name && verdict.ci95) ++counts[verdict.scale];
  }
  return std::ranges::max_element(counts, {}, &std::pair<const Scale, int>::second)->first;
}

EffectColumn column_of(const Comparison& comparison, const Metric& metric) {
  EffectColumn column;
  column.title = metric.title;
  const Scale scale = usual_scale(comparison, metric);
  for (const Cell& cell : comparison.cells) {
    for (const Arm& arm : cell.arms)
      column.effects.push_back(effect_of(cell.find(arm.value, metric.name), scale));
  }
  column.unit = unit_of(scale) + (metric.higher_is_better() ? ", higher is better" : ", lower is better");
  return column;
}

void drop_empty_rows(Effects& figure) {
  for (std::size_t row = figure.rows.size(); row-- > 0;) {
    const bool empty = std::ranges::none_of(
        figure.columns, [&](const EffectColumn& column) { return column.effects[row].has_value(); });
    if (!empty) continue;
    const auto at = static_cast<std::ptrdiff_t>(row);
    figure.rows.erase(figure.rows.begin() + at);
    for (EffectColumn& column : figure.columns) column.effects.erase(column.effects.begin() + at);
  }
}

Table table_of(const Effects& figure) {
  Table table;
  table.columns = {"cell",      "arm",        "metric",      "effect", "low 95 %",
                   "high 95 %", "margin low", "margin high", "unit",   "verdict"};
  for (const EffectColumn& column : figure.columns) {
    for (std::size_t i = 0; i < figure.rows.size(); ++i) {
      if (!column.effects[i]) continue;
      const Effect& effect = *column.effects[i];
      table.rows.push_back({figure.rows[i].group, figure.rows[i].label, column.title, effect.value,
                            effect.low, effect.high, effect.margin_low, effect.margin_high,
                            effect.on_scale ? column.unit : "see text", effect.verdict});
    }
  }
  return table;
}

// What the times of a figure are, if it has some.
std::string times_text(const Report& report, const Comparison& comparison, const Effects& effects) {
  if (std::ranges::none_of(effects.columns, [](const EffectColumn& column) {
        return column.title.find("time") != std::string::npos;
      }))
    return "";
  std::vector<const Cell*> cells;
  bool several = false;
  for (const Cell& cell : comparison.cells) {
    cells.push_back(&cell);
    for (const Arm& arm : cell.arms) several = several || arm.ranks() > 1;
  }
  return (several ? " Times are those of the slowest rank." : "") + uncounted_text(report, cells);
}

}  // namespace

std::vector<Figure> make_effects(const Report& report, const Comparison& comparison, const Palette& palette,
                                 const std::string& slug) {
  std::vector<EffectRow> rows;
  for (const Cell& cell : comparison.cells) {
    for (const Arm& arm : cell.arms) rows.push_back({cell.label, arm.value, palette.at(arm.value)});
  }
  std::vector<Figure> figures;
  Effects* last = nullptr;
  std::string task;
  for (const Metric* metric : drawn_metrics(comparison)) {
    if (last == nullptr || last->columns.size() == most_columns(*metric) || metric->task != task) {
      task = metric->task;
      Figure figure;
      figure.slug = slug + (figures.empty() ? "" : fmt::format("-{}", figures.size() + 1));
      figure.title = heading(comparison, "Effects");
      figure.picture = Effects{rows, {}};
      figure.caption =
          "Change against " + baseline_text(comparison.compare) +
          ". The bar is the 95 % t interval of the mean change over pairs: if the experiment were repeated "
          "many times, 95 % of such intervals would contain the true change. Shaded strip: the margin, "
          "inside which a change counts as no change. Arrow: the interval continues outside the plot. Two "
          "ticks: "
          "the interval that decides, if the bar contradicts the word. "
          "Effects in other units are printed as text.";
      figure.sql =
          "SELECT * FROM task_final_metrics WHERE run_key IN ('" +
          joined(
              comparison.cells, [](const Cell& cell) { return joined(run_keys(cell), {}, "', '"); }, "', '") +
          "')\nORDER BY model, strategy, seed";
      figures.push_back(std::move(figure));
      last = &std::get<Effects>(figures.back().picture);
    }
    last->columns.push_back(column_of(comparison, *metric));
    if (!metric->own_name.empty())
      figures.back().sql += "\n-- " + metric->column + " is in the figure of its epochs";
  }
  for (Figure& figure : figures) {
    auto& effects = std::get<Effects>(figure.picture);
    drop_empty_rows(effects);
    figure.data = table_of(effects);
    figure.caption += times_text(report, comparison, effects);
  }
  return figures;
}

}  // namespace trainyard::reports
