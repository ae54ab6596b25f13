#include "reports/draw/drawing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "reports/draw/scale.h"
#include "reports/draw/svg.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

std::string stroke(double x1, double y1, double x2, double y2) {
  const std::string from = "M" + coordinate(x1) + " " + coordinate(y1);
  if (y1 == y2) return from + "H" + coordinate(x2);
  if (x1 == x2) return from + "V" + coordinate(y2);
  return from + "L" + coordinate(x2) + " " + coordinate(y2);
}

void draw_strokes(Markup& out, const char* style, const std::string& strokes) {
  if (!strokes.empty()) out.empty("path", {{"class", style}, {"d", strokes}});
}

void draw_rule(Markup& out, const char* style, double x1, double y1, double x2, double y2) {
  draw_strokes(out, style, stroke(x1, y1, x2, y2));
}

void draw_text(Markup& out, const char* style, double x, double y, const std::string& text) {
  if (text.empty()) return;
  out.leaf("text", {{"class", style}, {"x", coordinate(x)}, {"y", coordinate(y)}}, text);
}

bool has_interval(const Point& point) {
  return std::isfinite(point.low) && std::isfinite(point.high);
}

std::vector<LegendEntry> legend_of(const std::vector<Series>& series) {
  std::vector<LegendEntry> entries;
  entries.reserve(series.size());
  for (const Series& one : series) entries.push_back({one.label, series_class(one)});
  return entries;
}

namespace {

std::string with_interval(const Point& point) {
  std::string text = for_table(point.mean);
  if (has_interval(point)) text += fmt::format(" ({} to {})", for_table(point.low), for_table(point.high));
  return text;
}

}  // namespace

std::string spoken(const std::vector<Series>& series) {
  std::string text;
  for (const Series& one : series) {
    if (one.final) text += fmt::format("; {} {}", one.label, with_interval(*one.final));
    if (one.final || one.points.empty()) continue;
    text += fmt::format("; {} ends at {}", one.label, with_interval(one.points.back()));
  }
  return text;
}

namespace {

constexpr double bar_label_size = 10.5;
constexpr double bars_top = 10;
constexpr double bar_guide_row = 13;
constexpr double bars_bottom = 158;

double highest(const Bars& bars) {
  double high = 0;
  double means = 0;
  for (const Series& series : bars.series) {
    if (!series.final) continue;
    means = std::max(means, series.final->mean);
    high = std::max({high, series.final->mean, has_interval(*series.final) ? series.final->high : 0});
  }
  // Guides may stretch the axis until the bars have only half of the height.
  for (const Guide& guide : bars.guides) {
    const double value = guide.points.empty() ? 0 : guide.points.front().second;
    if (value <= 2 * means) high = std::max(high, value);
  }
  // Cut intervals at twice the height of the bars: with two seeds they can be ten times as high.
  return high > 0 ? std::min(high, 2 * means) * 1.04 : 1;
}

// Draws the names under the bars, in two rows if they would touch.
void draw_names(Markup& out, const std::vector<const Series*>& bars, double left, double step) {
  bool touching = false;
  for (const Series* series : bars) {
    touching = touching || text_width(series->short_label, bar_label_size) > step - 4;
  }
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double y = bars_bottom + 14 + (touching && i % 2 == 1 ? 13 : 0);
    draw_text(out, "mid", left + (static_cast<double>(i) + 0.5) * step, y, bars[i]->short_label);
  }
}

void draw_bar(Markup& out, const Series& series, const Scale1D& y, double center, double width) {
  const Point& point = *series.final;
  const double height = y(0) - y(point.mean);
  out.open("g", {{"class", series_class(series)}});
  out.empty("rect", {{"class", "bar"},
                     {"x", coordinate(center - width / 2)},
                     {"y", coordinate(y(point.mean))},
                     {"width", coordinate(width)},
                     {"height", coordinate(height)}});
  if (!has_interval(point)) {
    out.close();
    return;
  }
  draw_rule(out, "wh", center, y(point.low), center, y(point.high));
  for (const double end : {point.low, point.high}) {
    if (end >= y.low && end <= y.high) draw_rule(out, "wh", center - 4, y(end), center + 4, y(end));
  }
  out.close();
}

// Draws guides as lines across all bars, with labels in rows above the bars.
void draw_bar_guides(Markup& out, const Bars& bars, const std::string& unit, const Scale1D& y, double left,
                     double right) {
  double row = 8;
  for (const Guide& guide : bars.guides) {
    const double value = guide.points.front().second;
    out.open("g", {{"class", "gd gd-" + guide.colour}});
    if (value <= y.high) draw_rule(out, "gl", left, y(value), right, y(value));
    draw_rule(out, "gl", left, row - 3, left + 14, row - 3);
    draw_text(out, "gt", left + 18, row,
              fmt::format("{}: {} {}{}", guide.label, for_table(value, 3), unit,
                          value <= y.high ? "" : ", off the scale"));
    out.close();
    row += bar_guide_row;
  }
}

void draw_bars(Markup& out, const Bars& figure, const std::string& unit) {
  const double top = bars_top + bar_guide_row * static_cast<double>(figure.guides.size());
  const Scale1D y{0, highest(figure), bars_bottom, top, false};
  const std::vector<Tick> y_ticks = ticks(y.low, y.high, 5, false);
  double left = 0;
  for (const Tick& tick : y_ticks) left = std::max(left, text_width(tick.label, bar_label_size) + 8);
  const double right = panel_width - 8;
  for (const Tick& tick : y_ticks) {
    draw_rule(out, "g", left, y(tick.value), right, y(tick.value));
    draw_text(out, "e", left - 5, y(tick.value) + 3.5, tick.label);
  }
  std::vector<const Series*> bars;
  for (const Series& series : figure.series) {
    if (series.final) bars.push_back(&series);
  }
  const double step = (right - left) / static_cast<double>(std::max<std::size_t>(1, bars.size()));
  for (std::size_t i = 0; i < bars.size(); ++i) {
    draw_bar(out, *bars[i], y, left + (static_cast<double>(i) + 0.5) * step, std::min(44.0, 0.62 * step));
  }
  draw_bar_guides(out, figure, unit, y, left, right);
  draw_rule(out, "ax", left, bars_bottom, right, bars_bottom);
  draw_names(out, bars, left, step);
}

}  // namespace

Drawing drawing_of(const Figure& figure, const Bars& bars, const DrawingStyle&) {
  return {.legend = legend_of(bars.series),
          .spoken = spoken(bars.series),
          .crosshair = {},
          .draw = [&](Markup& out) { draw_bars(out, bars, figure.unit); }};
}

// Stacked bars, in percent of each group's baseline, with the seconds at their ends.

namespace {

constexpr double stack_label_size = 12;
constexpr double stack_row_height = 19;
constexpr double bar_height = 15;
constexpr double stack_group_gap = 14;
constexpr double stack_top = 14;
constexpr double stack_axis_height = 26;
constexpr double room_for_seconds = 70;

double share(const Stack& stack, double seconds) {
  return 100 * seconds / stack.reference;
}

double widest_share(const Stacks& figure) {
  double widest = 100;
  for (const Stack& stack : figure.stacks) widest = std::max(widest, share(stack, stack.total));
  return widest * 1.02;
}

double stack_label_width(const Stacks& figure) {
  double widest = 0;
  for (const Stack& stack : figure.stacks) {
    widest = std::max(
        widest, text_width(stack.group, stack_label_size) * 1.1 + text_width(stack.label, stack_label_size));
  }
  return std::min(widest + 40, page_width / 2);
}

void draw_stack(Markup& out, const Stacks& figure, const Stack& stack, const Scale1D& x, double y) {
  double seconds = 0;
  for (std::size_t i = 0; i < stack.parts.size(); ++i) {
    const double from = x(share(stack, seconds));
    seconds += stack.parts[i];
    const double width = x(share(stack, seconds)) - from;
    if (width < 0.005) continue;
    out.open("rect", {{"class", "seg p-" + figure.parts[i].colour},
                      {"x", coordinate(from)},
                      {"y", coordinate(y)},
                      {"width", coordinate(width)},
                      {"height", coordinate(bar_height)}});
    out.leaf("title", {},
             fmt::format("{}, {}: {} {} s ({} % of the baseline's epoch)", stack.group, stack.label,
                         figure.parts[i].name, for_table(stack.parts[i], 3),
                         fixed(share(stack, stack.parts[i]), 0)));
    out.close();
  }
  draw_text(out, "pc", x(share(stack, stack.total)) + 8, y + 12, for_table(stack.total, 3) + " s");
}

double stacks_height(const Stacks& figure) {
  double height = stack_top + stack_axis_height;
  for (std::size_t i = 0; i < figure.stacks.size(); ++i) {
    height += stack_row_height +
              (i > 0 && figure.stacks[i].group != figure.stacks[i - 1].group ? stack_group_gap : 0);
  }
  return height + 8;
}

void draw_stacks(Markup& out, const Stacks& figure) {
  const double left = stack_label_width(figure);
  const Scale1D x{0, widest_share(figure), left, page_width - room_for_seconds, false};
  const double bottom = stacks_height(figure) - stack_axis_height;
  for (const Tick& tick : ticks(x.low, x.high, 6, false)) {
    draw_rule(out, "g", x(tick.value), stack_top - 6, x(tick.value), bottom);
    draw_text(out, "mid", x(tick.value), bottom + 16, tick.label + " %");
  }
  draw_rule(out, "parity", x(100), stack_top - 6, x(100), bottom);
  double y = stack_top;
  for (std::size_t i = 0; i < figure.stacks.size(); ++i) {
    const Stack& stack = figure.stacks[i];
    const bool first = i == 0 || stack.group != figure.stacks[i - 1].group;
    if (first && i > 0) y += stack_group_gap;
    if (first) draw_text(out, "mn", 0, y + 12, stack.group);
    draw_text(out, "e", left - 10, y + 12, stack.label);
    draw_stack(out, figure, stack, x, y);
    y += stack_row_height;
  }
}

}  // namespace

Drawing drawing_of(const Figure&, const Stacks& stacks, const DrawingStyle&) {
  Drawing drawing;
  drawing.width = page_width;
  drawing.height = stacks_height(stacks);
  for (const Part& part : stacks.parts) drawing.legend.push_back({part.name, "p-" + part.colour, true});
  for (const Stack& stack : stacks.stacks)
    drawing.spoken += fmt::format("; {} {} {} s", stack.group, stack.label, for_table(stack.total, 3));
  drawing.draw = [&](Markup& out) { draw_stacks(out, stacks); };
  return drawing;
}

// Forest plots: one row per cell and arm, one column with its own axis per metric. The margin is shaded.

namespace {

constexpr double forest_label_size = 12;
constexpr double forest_row_height = 19;
constexpr double forest_group_gap = 8;
constexpr double forest_head = 40;
constexpr double forest_axis_height = 24;
constexpr double column_gap = 26;

struct Column {
  const EffectColumn* data = nullptr;
  Scale1D x;
  double text_left = 0;  // left edge of the printed effects
};

double text_room(const EffectColumn& column) {
  double widest = 0;
  for (const std::optional<Effect>& effect : column.effects) {
    if (effect) widest = std::max(widest, text_width(effect->glyph + " " + effect->text, forest_label_size));
  }
  return widest + 10;
}

// An axis over effects, margins and intervals. Intervals extend it on each side by at most the extent of
// effects and margins, so one wide interval does not squeeze all others.
Scale1D axis_of(const EffectColumn& column, double left, double right) {
  double low = 0;
  double high = 0;
  double least = 0;
  double most = 0;
  for (const std::optional<Effect>& effect : column.effects) {
    if (!effect || !effect->on_scale) continue;
    low = std::min({low, effect->value, effect->margin_low});
    high = std::max({high, effect->value, effect->margin_high});
    least = std::min(least, effect->low);
    most = std::max(most, effect->high);
  }
  const double extent = high > low ? high - low : 1;
  low = std::min(low, std::max(least, low - extent)) - 0.04 * extent;
  high = std::max(high, std::min(most, high + extent)) + 0.04 * extent;
  return {low, high, left, right, false};
}

double forest_label_width(const Effects& figure) {
  double group = 0;
  double label = 0;
  for (const EffectRow& row : figure.rows) {
    group = std::max(group, text_width(row.group, forest_label_size) * 1.12);
    label = std::max(label, text_width(row.label, forest_label_size));
  }
  return std::min(group + label + 34, page_width / 3);
}

std::vector<Column> columns_of(const Effects& figure, double left) {
  std::vector<Column> columns;
  const auto count = static_cast<double>(figure.columns.size());
  const double width = (page_width - left - column_gap * (count - 1)) / count;
  for (const EffectColumn& data : figure.columns) {
    const double right = left + width;
    const double text_left = right - text_room(data);
    columns.push_back({&data, axis_of(data, left, text_left - 10), text_left});
    left = right + column_gap;
  }
  return columns;
}

void draw_arrow(Markup& out, double x, double y, double direction) {
  out.empty("path", {{"class", "d"},
                     {"d", "M" + coordinate(x) + " " + coordinate(y) + "l" + coordinate(-5 * direction) +
                               " -3.5v7z"}});
}

void draw_effect(Markup& out, const Effect& effect, const Column& column, const EffectRow& row, double y) {
  out.open("g", {{"class", "c-" + row.colour}});
  if (effect.on_scale) {
    draw_rule(out, "eb", column.x(effect.low), y, column.x(effect.high), y);
    if (effect.low < column.x.low) draw_arrow(out, column.x(effect.low), y, -1);
    if (effect.high > column.x.high) draw_arrow(out, column.x(effect.high), y, 1);
    out.empty(
        "circle",
        {{"class", "d"}, {"cx", coordinate(column.x(effect.value))}, {"cy", coordinate(y)}, {"r", "3.4"}});
  }
  out.close();
  draw_text(out, "pc", column.text_left, y + 4, effect.glyph + " " + effect.text);
}

void draw_margin(Markup& out, const Effect& effect, const Column& column, double y) {
  if (!effect.on_scale) return;
  const double left = column.x(effect.margin_low);
  out.empty("rect", {{"class", "mg"},
                     {"x", coordinate(left)},
                     {"y", coordinate(y - forest_row_height / 2)},
                     {"width", coordinate(column.x(effect.margin_high) - left)},
                     {"height", coordinate(forest_row_height)}});
}

std::vector<double> row_places(const Effects& figure) {
  std::vector<double> places;
  double y = forest_head + forest_row_height / 2;
  for (std::size_t i = 0; i < figure.rows.size(); ++i) {
    if (i > 0 && figure.rows[i].group != figure.rows[i - 1].group) y += forest_group_gap;
    places.push_back(y);
    y += forest_row_height;
  }
  return places;
}

void draw_column(Markup& out, const Effects& figure, const Column& column,
                 const std::vector<double>& places) {
  const double bottom = places.back() + forest_row_height / 2 + 2;
  draw_text(out, "mn", column.x.pixel_low, 12, column.data->title);
  draw_text(out, "un", column.x.pixel_low, 27, column.data->unit);
  for (const Tick& tick : ticks(column.x.low, column.x.high, 4, false)) {
    draw_rule(out, "g", column.x(tick.value), forest_head - 2, column.x(tick.value), bottom);
    draw_text(out, "mid", column.x(tick.value), bottom + 16, tick.label);
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (column.data->effects[i]) draw_margin(out, *column.data->effects[i], column, places[i]);
  }
  draw_rule(out, "ax", column.x(0), forest_head - 2, column.x(0), bottom);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (column.data->effects[i])
      draw_effect(out, *column.data->effects[i], column, figure.rows[i], places[i]);
    if (!column.data->effects[i]) draw_text(out, "un", column.text_left, places[i] + 4, "–");
  }
}

double effects_height(const Effects& figure) {
  return figure.rows.empty() ? forest_head
                             : row_places(figure).back() + forest_row_height / 2 + forest_axis_height;
}

void draw_effects(Markup& out, const Effects& figure) {
  if (figure.rows.empty()) return;
  const double left = forest_label_width(figure);
  const std::vector<double> places = row_places(figure);
  for (std::size_t i = 0; i < figure.rows.size(); ++i) {
    const bool first = i == 0 || figure.rows[i].group != figure.rows[i - 1].group;
    if (first) draw_text(out, "mn", 0, places[i] + 4, figure.rows[i].group);
    draw_text(out, "e", left - 12, places[i] + 4, figure.rows[i].label);
  }
  for (const Column& column : columns_of(figure, left)) draw_column(out, figure, column, places);
}

}  // namespace

Drawing drawing_of(const Figure&, const Effects& effects, const DrawingStyle&) {
  Drawing drawing;
  drawing.width = page_width;
  drawing.height = effects_height(effects);
  for (const EffectRow& row : effects.rows)
    if (std::ranges::find(drawing.legend, row.label, &LegendEntry::label) == drawing.legend.end())
      drawing.legend.push_back({row.label, "c-" + row.colour});
  for (const EffectColumn& column : effects.columns) drawing.spoken += "; " + column.title;
  drawing.draw = [&](Markup& out) { draw_effects(out, effects); };
  return drawing;
}

}  // namespace trainyard::reports
