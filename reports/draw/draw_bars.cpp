// Bars of one number a series, from zero, with intervals.
#include <algorithm>
#include <cmath>

#include "reports/draw/drawing.h"
#include "reports/draw/svg.h"
#include "reports/draw/text_width.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

constexpr double label_size = 10.5;
constexpr double usual_top = 10;
constexpr double guide_row = 13;
constexpr double bottom = 158;

double highest(const Figure& figure) {
  double high = 0;
  double means = 0;
  for (const Series& series : figure.series) {
    if (!series.final) continue;
    means = std::max(means, series.final->mean);
    high = std::max({high, series.final->mean, has_interval(*series.final) ? series.final->high : 0});
  }
  // Guides take part while the bars keep half of the height.
  for (const Guide& guide : figure.guides) {
    const double value = guide.points.empty() ? 0 : guide.points.front().second;
    if (value <= 2 * means) high = std::max(high, value);
  }
  // The interval of two seeds may reach ten times as far as the bars: it is then cut at twice their height.
  return high > 0 ? std::min(high, 2 * means) * 1.04 : 1;
}

// Names under bars that would touch are put in two rows.
void draw_names(Markup& out, const std::vector<const Series*>& bars, double left, double step) {
  bool touching = false;
  for (const Series* series : bars) {
    touching = touching || text_width(series->short_label, label_size) > step - 4;
  }
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double y = bottom + 14 + (touching && i % 2 == 1 ? 13 : 0);
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

// Lines across all bars, named in rows above them, where no bar can reach the names.
void draw_bar_guides(Markup& out, const Figure& figure, const Scale1D& y, double left, double right) {
  double row = 8;
  for (const Guide& guide : figure.guides) {
    const double value = guide.points.front().second;
    out.open("g", {{"class", "gd gd-" + guide.colour}});
    if (value <= y.high) draw_rule(out, "gl", left, y(value), right, y(value));
    draw_rule(out, "gl", left, row - 3, left + 14, row - 3);
    draw_text(out, "gt", left + 18, row,
              guide.label + ": " + for_table(value, 3) + " " + figure.unit +
                  (value <= y.high ? "" : ", off the scale"));
    out.close();
    row += guide_row;
  }
}

}  // namespace

void draw_bars(Markup& out, const Figure& figure) {
  const double top = usual_top + guide_row * static_cast<double>(figure.guides.size());
  const Scale1D y{0, highest(figure), bottom, top, false};
  const std::vector<Tick> y_ticks = ticks(y.low, y.high, 5, false);
  double left = 0;
  for (const Tick& tick : y_ticks) left = std::max(left, text_width(tick.label, label_size) + 8);
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
  draw_bar_guides(out, figure, y, left, right);
  draw_rule(out, "ax", left, bottom, right, bottom);
  draw_names(out, bars, left, step);
}

}  // namespace trainyard::reports
