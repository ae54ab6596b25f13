#include "reports/draw/line_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/draw/svg.h"
#include "reports/draw/text_width.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

constexpr double usual_top = 10;
constexpr double guide_row = 13;  // height of a label above the curves
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
  double extent(bool log) const { return log ? std::log(high / low) : high - low; }
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

// Guides widen the range while the curves keep their share of it.
void take_guides(Range& range, const Figure& figure) {
  for (const Guide& guide : figure.guides) {
    Range wider = range;
    for (const auto& [x, y] : guide.points) wider.take(y, figure.y.log);
    const double before = range.extent(figure.y.log);
    if (before > 0 && before >= least_share_of_curves * wider.extent(figure.y.log)) range = wider;
  }
}

// A band must not squeeze the curves: intervals of few seeds can be far wider than everything else, so that a
// band takes part in the range only up to the means' own extent on each side. What leaves the picture is
// clipped.
Range curve_range(const Figure& figure) {
  const bool log = figure.y.log;
  Range means;
  Range all;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      means.take(point.mean, log);
      all.take(point, log);
    }
  }
  if (log) {
    const double extent = means.high / means.low;
    all.low = std::max(all.low, means.low / extent);
    all.high = std::min(all.high, means.high * extent);
  } else {
    const double extent = means.high - means.low;
    all.low = std::max(all.low, means.low - extent);
    all.high = std::min(all.high, means.high + extent);
  }
  all.take(means.low, log);
  all.take(means.high, log);
  if (figure.y.from_zero) all.low = 0;
  take_guides(all, figure);
  Range range = padded(all, log, 0.01);
  if (figure.y.from_zero) range.low = 0;
  if (figure.y.most) range.high = std::min(range.high, std::max(*figure.y.most, means.high));
  if (figure.y.least && !log) range.low = std::max(range.low, *figure.y.least);
  return range;
}

// Within what the metric can be: an interval may reach beyond 100 % or below zero, the axis does not.
Range strip_range(const Figure& figure) {
  Range range;
  for (const Series& series : figure.series) {
    if (series.final) range.take(*series.final, false);
  }
  range = padded(range, false, 0.002);
  if (figure.y.most) range.high = std::min(range.high, *figure.y.most);
  if (figure.y.least) range.low = std::max(range.low, *figure.y.least);
  return range;
}

double widest_label(const std::vector<Tick>& all) {
  double width = 0;
  for (const Tick& tick : all) width = std::max(width, text_width(tick.label, axis_label_size));
  return width;
}

void lay_x(LineLayout& layout, const Figure& figure) {
  Range range;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) range.take(point.x, false);
  }
  if (figure.x.from_zero) range.take(0, false);
  // One epoch stands in the middle.
  if (range.low == range.high) {
    const double middle = (layout.left + layout.right) / 2;
    layout.x = {range.low, range.low + 1, middle, middle + 1, false};
    layout.x_ticks = {{range.low, plain_number(range.low)}};
    return;
  }
  const double air = figure.markers ? 14 : 4;
  layout.x = {range.low, range.high, layout.left + air, layout.right - air, false};
  layout.x_ticks =
      figure.x.integers ? integer_ticks(range.low, range.high, 5) : ticks(range.low, range.high, 5, false);
}

// `from` … `to` cut at the scale's ends; by linear interpolation, on a logarithmic axis of the logarithms.
Polyline inside(const Guide& guide, const LineLayout& layout) {
  Polyline line;
  const auto seen = [&](double x, double y) {
    return x >= layout.x.low && x <= layout.x.high && y >= layout.y.low && y <= layout.y.high;
  };
  const auto pixels = [&](double x, double y) { return std::pair{layout.x(x), layout.y(y)}; };
  for (std::size_t i = 0; i < guide.points.size(); ++i) {
    const auto [x, y] = guide.points[i];
    if (i > 0 && layout.x.high > layout.x.low) {
      const auto [x0, y0] = guide.points[i - 1];
      for (const double end : {layout.x.low, layout.x.high}) {
        if (!(std::min(x0, x) < end && end < std::max(x0, x))) continue;
        const double share = (end - x0) / (x - x0);
        const double at = layout.y.log ? y0 * std::pow(y / y0, share) : y0 + share * (y - y0);
        if (seen(end, at)) line.push_back(pixels(end, at));
      }
    }
    if (seen(x, y)) line.push_back(pixels(x, y));
  }
  std::ranges::sort(line);
  return line;
}

// What is not in the picture is said: how far off it lies, or of which epoch it is.
std::string text_of(const Guide& guide, const Figure& figure, const LineLayout& layout, bool drawn) {
  if (drawn || guide.points.empty()) return guide.label;
  const auto [x, y] = guide.points.back();
  const std::string unit = figure.unit == "log scale" ? "" : " " + figure.unit;
  const bool on_scale = y >= layout.y.low && y <= layout.y.high;
  const std::string where = on_scale ? " at " + figure.x.title + " " + plain_number(x) : ", off the scale";
  return guide.label + ": " + for_table(y, 3) + unit + where;
}

void lay_guides(LineLayout& layout, const Figure& figure) {
  layout.guides.clear();
  for (const Guide& guide : figure.guides) {
    Polyline line = inside(guide, layout);
    std::string text = text_of(guide, figure, layout, !line.empty());
    layout.guides.push_back({&guide, std::move(line), std::move(text), std::nullopt});
  }
}

// All but the labels of guides, with room for `rows` of them above the curves.
LineLayout layout_with(const Figure& figure, std::ptrdiff_t rows) {
  LineLayout layout;
  const Range y = curve_range(figure);
  layout.top = usual_top + guide_row * static_cast<double>(rows);
  layout.y = {y.low, y.high, line_bottom, layout.top, figure.y.log};
  layout.y_ticks = ticks(y.low, y.high, wanted_ticks, figure.y.log);
  layout.left = widest_label(layout.y_ticks) + 8;
  layout.right = panel_width - 8;
  layout.has_strip =
      std::ranges::any_of(figure.series, [](const Series& series) { return series.final.has_value(); });
  if (layout.has_strip) {
    const Range strip = strip_range(figure);
    layout.strip = {strip.low, strip.high, line_bottom, layout.top, false};
    layout.strip_ticks = ticks(strip.low, strip.high, 4, false);
    layout.strip_right = panel_width - widest_label(layout.strip_ticks) - 6;
    layout.strip_left = layout.strip_right - strip_width;
    layout.right = layout.strip_left - gap;
  }
  lay_x(layout, figure);
  lay_guides(layout, figure);
  place_guide_labels(layout, figure);
  return layout;
}

}  // namespace

LineLayout line_layout(const Figure& figure) {
  const auto homeless = [](const LineLayout& layout) {
    return std::ranges::count_if(layout.guides, [](const GuideLayout& guide) { return !guide.label; });
  };
  LineLayout layout = layout_with(figure, 0);
  // Rows above the curves make them lower, which may cost another label its place: at most all of them.
  for (std::ptrdiff_t rows = homeless(layout); rows > 0;) {
    layout = layout_with(figure, rows);
    const std::ptrdiff_t now = homeless(layout);
    if (now <= rows) break;
    rows = now;
  }
  return layout;
}

}  // namespace trainyard::reports
