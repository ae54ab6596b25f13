// A forest plot: a row an arm of each cell, a column a metric with an axis of its own, the margin shaded.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/draw/drawing.h"
#include "reports/draw/text_width.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

constexpr double label_size = 12;
constexpr double row_height = 19;
constexpr double group_gap = 8;
constexpr double head = 40;
constexpr double axis_height = 24;
constexpr double column_gap = 26;

struct Column {
  const EffectColumn* data = nullptr;
  Scale1D x;
  double text_left = 0;  // where the effects stand in words
};

double text_room(const EffectColumn& column) {
  double widest = 0;
  for (const std::optional<Effect>& effect : column.effects) {
    if (effect) widest = std::max(widest, text_width(effect->glyph + " " + effect->text, label_size));
  }
  return widest + 10;
}

// Intervals take part up to thrice the extent of effects and margins: one wide interval must not squeeze all
// others.
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

double label_width(const Figure& figure) {
  double group = 0;
  double label = 0;
  for (const EffectRow& row : figure.rows) {
    group = std::max(group, text_width(row.group, label_size) * 1.12);
    label = std::max(label, text_width(row.label, label_size));
  }
  return std::min(group + label + 34, stacks_width / 3);
}

std::vector<Column> columns_of(const Figure& figure, double left) {
  std::vector<Column> columns;
  const auto count = static_cast<double>(figure.columns.size());
  const double width = (stacks_width - left - column_gap * (count - 1)) / count;
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
                     {"y", coordinate(y - row_height / 2)},
                     {"width", coordinate(column.x(effect.margin_high) - left)},
                     {"height", coordinate(row_height)}});
}

std::vector<double> row_places(const Figure& figure) {
  std::vector<double> places;
  double y = head + row_height / 2;
  for (std::size_t i = 0; i < figure.rows.size(); ++i) {
    if (i > 0 && figure.rows[i].group != figure.rows[i - 1].group) y += group_gap;
    places.push_back(y);
    y += row_height;
  }
  return places;
}

void draw_column(Markup& out, const Figure& figure, const Column& column, const std::vector<double>& places) {
  const double bottom = places.back() + row_height / 2 + 2;
  draw_text(out, "mn", column.x.pixel_low, 12, column.data->title);
  draw_text(out, "un", column.x.pixel_low, 27, column.data->unit);
  for (const Tick& tick : ticks(column.x.low, column.x.high, 4, false)) {
    draw_rule(out, "g", column.x(tick.value), head - 2, column.x(tick.value), bottom);
    draw_text(out, "mid", column.x(tick.value), bottom + 16, tick.label);
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (column.data->effects[i]) draw_margin(out, *column.data->effects[i], column, places[i]);
  }
  draw_rule(out, "ax", column.x(0), head - 2, column.x(0), bottom);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (column.data->effects[i])
      draw_effect(out, *column.data->effects[i], column, figure.rows[i], places[i]);
    if (!column.data->effects[i]) draw_text(out, "un", column.text_left, places[i] + 4, "–");
  }
}

}  // namespace

double effects_height(const Figure& figure) {
  return figure.rows.empty() ? head : row_places(figure).back() + row_height / 2 + axis_height;
}

void draw_effects(Markup& out, const Figure& figure) {
  if (figure.rows.empty()) return;
  const double left = label_width(figure);
  const std::vector<double> places = row_places(figure);
  for (std::size_t i = 0; i < figure.rows.size(); ++i) {
    const bool first = i == 0 || figure.rows[i].group != figure.rows[i - 1].group;
    if (first) draw_text(out, "mn", 0, places[i] + 4, figure.rows[i].group);
    draw_text(out, "e", left - 12, places[i] + 4, figure.rows[i].label);
  }
  for (const Column& column : columns_of(figure, left)) draw_column(out, figure, column, places);
}

}  // namespace trainyard::reports
