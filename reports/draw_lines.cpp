// Curves over epochs with bands, and at the right a strip with the final values on a scale of their own: on
// the curves their differences cannot be seen.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/drawing.h"
#include "reports/number_text.h"
#include "reports/svg.h"
#include "reports/text_width.h"

namespace trainyard::reports {

namespace {

constexpr double label_size = 10.5;
constexpr double top = 10;
constexpr double bottom = 166;
constexpr double strip_width = 62;
constexpr double gap = 24;  // between curves and strip
constexpr int wanted_ticks = 5;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value, bool log) {
    if (!std::isfinite(value) || (log && value <= 0)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void take(const Point& point, bool log) {
    for (const double value : {point.mean, point.low, point.high}) take(value, log);
  }
};

// A little air, and never a range without extent.
Range padded(Range range, bool log, double least_relative) {
  const double least = least_relative * std::max(std::abs(range.low), std::abs(range.high));
  if (!(range.high - range.low >= least) || range.high == range.low) {
    const double middle = (range.low + range.high) / 2;
    const double half = std::max(least / 2, middle == 0 ? 0.5 : 1e-6 * std::abs(middle));
    range = {middle - half, middle + half};
  }
  if (log && range.low > 0) {
    const double factor = std::pow(range.high / range.low, 0.04);
    return {range.low / factor, range.high * factor};
  }
  const double air = 0.04 * (range.high - range.low);
  return {range.low - air, range.high + air};
}

// A band must not squeeze the curves: intervals of few seeds can be far wider than everything else, so that a
// band takes part in the range only up to the means' own extent on each side. What leaves the picture is
// clipped.
Range curve_range(const Figure& figure) {
  Range means;
  Range all;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      means.take(point.mean, figure.y.log);
      all.take(point, figure.y.log);
    }
  }
  if (figure.y.log) {
    const double extent = means.high / means.low;
    all.low = std::max(all.low, means.low / extent);
    all.high = std::min(all.high, means.high * extent);
  } else {
    const double extent = means.high - means.low;
    all.low = std::max(all.low, means.low - extent);
    all.high = std::min(all.high, means.high + extent);
  }
  all.take(means.low, figure.y.log);
  all.take(means.high, figure.y.log);
  if (figure.unit == "s") all.low = 0;
  Range range = padded(all, figure.y.log, 0.01);
  if (figure.unit == "s") range.low = 0;
  if (figure.unit == "%") range.high = std::min(range.high, std::max(100.0, means.high));
  if (figure.unit == "%") range.low = std::max(range.low, 0.0);
  return range;
}

// Within what the metric can be: an interval may reach beyond 100 % or below zero, the axis does not.
Range strip_range(const Figure& figure) {
  Range range;
  for (const Series& series : figure.series) {
    if (series.final) range.take(*series.final, false);
  }
  range = padded(range, false, 0.002);
  if (figure.unit == "%") range.high = std::min(range.high, 100.0);
  range.low = std::max(range.low, 0.0);
  return range;
}

double widest_label(const std::vector<Tick>& all) {
  double width = 0;
  for (const Tick& tick : all) width = std::max(width, text_width(tick.label, label_size));
  return width;
}

bool has_strip(const Figure& figure) {
  return std::ranges::any_of(figure.series, [](const Series& series) { return series.final.has_value(); });
}

struct Layout {
  Scale1D x;
  Scale1D y;
  Scale1D strip;
  std::vector<Tick> y_ticks;
  std::vector<Tick> strip_ticks;
  double left = 0;
  double right = 0;
  double strip_left = 0;
  double strip_right = 0;
};

Layout layout_of(const Figure& figure) {
  Layout layout;
  const Range y = curve_range(figure);
  layout.y = {y.low, y.high, bottom, top, figure.y.log};
  layout.y_ticks = ticks(y.low, y.high, wanted_ticks, figure.y.log);
  layout.left = widest_label(layout.y_ticks) + 8;
  layout.right = panel_width - 8;
  if (has_strip(figure)) {
    const Range strip = strip_range(figure);
    layout.strip = {strip.low, strip.high, bottom, top, false};
    layout.strip_ticks = ticks(strip.low, strip.high, 4, false);
    layout.strip_right = panel_width - widest_label(layout.strip_ticks) - 6;
    layout.strip_left = layout.strip_right - strip_width;
    layout.right = layout.strip_left - gap;
  }
  Range epochs;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) epochs.take(point.x, false);
  }
  // One epoch stands in the middle.
  if (epochs.low == epochs.high) {
    const double middle = (layout.left + layout.right) / 2;
    layout.x = {epochs.low, epochs.low + 1, middle, middle + 1, false};
  } else {
    layout.x = {epochs.low, epochs.high, layout.left + 4, layout.right - 4, false};
  }
  return layout;
}

void draw_axes(Markup& out, const Figure& figure, const Layout& layout) {
  for (const Tick& tick : layout.y_ticks) {
    const double y = layout.y(tick.value);
    draw_rule(out, "g", layout.left, y, layout.right, y);
    draw_text(out, "e", layout.left - 5, y + 3.5, tick.label);
  }
  draw_rule(out, "ax", layout.left, bottom, layout.right, bottom);
  const bool one_epoch = layout.x.high == layout.x.low + 1 && layout.x.pixel_high == layout.x.pixel_low + 1;
  const std::vector<Tick> epochs = one_epoch ? std::vector<Tick>{{layout.x.low, plain_number(layout.x.low)}}
                                             : integer_ticks(layout.x.low, layout.x.high, 5);
  for (const Tick& tick : epochs) {
    const double x = layout.x(tick.value);
    draw_rule(out, "ax", x, bottom, x, bottom + 4);
    draw_text(out, "mid", x, bottom + 15, tick.label);
  }
  draw_text(out, "mid", (layout.left + layout.right) / 2, bottom + 28, figure.x.integers ? "epoch" : "");
}

std::string path_of(const Layout& layout, const std::vector<const Point*>& points, double Point::*value) {
  std::string path;
  for (const Point* point : points) {
    path += (path.empty() ? "" : " ") + coordinate(layout.x(point->x)) + "," +
            coordinate(layout.y(point->*value));
  }
  return path;
}

void draw_band(Markup& out, const Series& series, const Layout& layout) {
  std::vector<const Point*> points;
  for (const Point& point : series.points) {
    if (has_interval(point)) points.push_back(&point);
  }
  if (points.size() < 2 || series.dash > 0) return;
  const std::string upper = path_of(layout, points, &Point::high);
  std::ranges::reverse(points);
  out.empty("path", {{"class", "b"}, {"d", "M" + upper + " L" + path_of(layout, points, &Point::low) + "Z"}});
}

void draw_curve(Markup& out, const Series& series, const Layout& layout) {
  out.open("g", {{"class", series_class(series)}, {"data-series", series.key}});
  draw_band(out, series, layout);
  std::vector<const Point*> points;
  points.reserve(series.points.size());
  for (const Point& point : series.points) points.push_back(&point);
  if (points.size() > 1) {
    out.empty("path", {{"class", "l"}, {"d", "M" + path_of(layout, points, &Point::mean)}});
  } else if (!points.empty()) {
    out.empty("circle", {{"class", "d"},
                         {"cx", coordinate(layout.x(points.front()->x))},
                         {"cy", coordinate(layout.y(points.front()->mean))},
                         {"r", "2.7"}});
  }
  out.close();
}

void draw_final(Markup& out, const Series& series, const Layout& layout, double x) {
  const Point& point = *series.final;
  out.open("g", {{"class", series_class(series)}, {"data-series", series.key}});
  if (has_interval(point)) draw_rule(out, "eb", x, layout.strip(point.low), x, layout.strip(point.high));
  out.empty(
      "circle",
      {{"class", "d"}, {"cx", coordinate(x)}, {"cy", coordinate(layout.strip(point.mean))}, {"r", "2.7"}});
  out.close();
}

void draw_strip(Markup& out, const Figure& figure, const Layout& layout) {
  for (const Tick& tick : layout.strip_ticks) {
    const double y = layout.strip(tick.value);
    draw_rule(out, "g", layout.strip_left, y, layout.strip_right, y);
    draw_text(out, "s", layout.strip_right + 4, y + 3.5, tick.label);
  }
  draw_rule(out, "ax", layout.strip_left, bottom, layout.strip_right, bottom);
  draw_text(out, "mid", (layout.strip_left + layout.strip_right) / 2, bottom + 15, figure.final_label);
  const auto count = static_cast<double>(
      std::ranges::count_if(figure.series, [](const Series& series) { return series.final.has_value(); }));
  double place = 0.5;
  for (const Series& series : figure.series) {
    if (!series.final) continue;
    const double x = layout.strip_left + strip_width * place / count;
    if (place < 1 && !series.points.empty()) {
      draw_rule(out, "lead", layout.right, layout.y(series.points.back().mean), layout.strip_left,
                layout.strip(series.final->mean));
    }
    draw_final(out, series, layout, x);
    ++place;
  }
}

}  // namespace

LineGeometry line_geometry(const Figure& figure) {
  const Layout layout = layout_of(figure);
  return {layout.x.pixel_low, (layout.x.pixel_high - layout.x.pixel_low) / (layout.x.high - layout.x.low),
          layout.x.low};
}

void draw_lines(Markup& out, const Figure& figure) {
  const Layout layout = layout_of(figure);
  draw_axes(out, figure, layout);
  // Ranks first, so that averages and the baseline lie on top.
  for (const Series& series : figure.series) {
    if (series.dash > 0) draw_curve(out, series, layout);
  }
  for (const Series& series : figure.series) {
    if (series.dash == 0) draw_curve(out, series, layout);
  }
  if (has_strip(figure)) draw_strip(out, figure, layout);
}

}  // namespace trainyard::reports
