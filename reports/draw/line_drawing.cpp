#include "reports/draw/line_drawing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "reports/draw/drawing.h"
#include "reports/draw/scale.h"
#include "reports/draw/svg.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

// Distances on the page. In sized drawings they grow with the font.
constexpr double usual_axis_font = 10.5;
constexpr double usual_guide_font = 9.5;
constexpr double below_curves = 32;  // tick labels and the title of the axis
// Guides may stretch an axis while the curves keep this share of it.
constexpr double least_share_of_curves = 0.45;
constexpr double guide_row = 13;     // height of a label above the curves
constexpr double guide_sample = 18;  // of its stroke
constexpr double dodge = 6;          // pixels between markers of arms at the same place

// Draws text below an axis, inside the picture.
void draw_below(Markup& out, const LineLayout& layout, double middle, double y, const std::string& text) {
  draw_text(out, "mid", middle_inside(middle, text, layout.axis_font, layout.width), y, text);
}

// The margin of differences as a strip, with a line at zero.
void draw_margin(Markup& out, const std::pair<double, double>& margin, const LineLayout& layout) {
  const double top = layout.y(margin.second);
  draw_rectangle(out, "mg", layout.left, top, layout.right - layout.left, layout.y(margin.first) - top);
  draw_rule(out, "ax", layout.left, layout.y(0), layout.right, layout.y(0));
}

void draw_axes(Markup& out, const Lines& figure, const LineLayout& layout) {
  std::string grid;
  for (const Tick& tick : layout.y_ticks) {
    const double y = layout.y(tick.value);
    grid += stroke(layout.left, y, layout.right, y);
    draw_text(out, "e", layout.left - 5, y + 3.5 * layout.scale, tick.label);
  }
  draw_strokes(out, "g", grid);
  if (figure.margin) draw_margin(out, *figure.margin, layout);
  const double bottom = layout.bottom;
  std::string axis = stroke(layout.left, bottom, layout.right, bottom);
  for (const Tick& tick : layout.x_ticks) {
    const double x = layout.x(tick.value);
    axis += stroke(x, bottom, x, bottom + 4);
    draw_below(out, layout, x, bottom + 15 * layout.scale, tick.label);
  }
  draw_strokes(out, "ax", axis);
  draw_below(out, layout, (layout.left + layout.right) / 2, bottom + 28 * layout.scale, figure.x.title);
}

// Draws the line (a ring if there is a single point), and the label with a sample of the line above the curves.
void draw_guide(Markup& out, const GuideLayout& guide, const LineLayout& layout, double row,
                double row_height) {
  out.open("g", {{"class", "gd gd-" + guide.guide->colour}});
  std::string path;
  for (const auto& [x, y] : guide.line)
    path += (path.empty() ? "M" : " ") + coordinate(x) + "," + coordinate(y);
  if (guide.line.size() > 1) out.empty("path", {{"class", "gl"}, {"d", path}});
  if (guide.line.size() == 1) draw_circle(out, "gl", guide.line.front().first, guide.line.front().second, 3);
  draw_rule(out, "gl", layout.left, row - 3, layout.left + 14, row - 3);
  draw_lines_of_text(out, "gt", layout.left + guide_sample, row, row_height, guide.rows);
  out.close();
}

void draw_guides(Markup& out, const LineLayout& layout) {
  const double scale = layout.guide_font / usual_guide_font;
  double row = 8 * scale;
  for (const GuideLayout& guide : layout.guides) {
    draw_guide(out, guide, layout, row, guide_row * scale);
    row += guide_row * scale * static_cast<double>(guide.rows.size());
  }
}

std::string path_of(const LineLayout& layout, const std::vector<Point>& points, double Point::*value,
                    double shift = 0) {
  std::string path;
  for (const Point& point : points) {
    path += (path.empty() ? "" : " ") + coordinate(layout.x(point.x) + shift) + "," +
            coordinate(layout.y(point.*value));
  }
  return path;
}

void draw_band(Markup& out, const Series& series, const LineLayout& layout) {
  std::vector<Point> points = series.points;
  std::erase_if(points, [](const Point& point) { return !has_interval(point); });
  if (points.size() < 2 || series.dash > 0) return;
  const std::string upper = path_of(layout, points, &Point::high);
  std::ranges::reverse(points);
  out.empty("path", {{"class", "b"}, {"d", "M" + upper + " L" + path_of(layout, points, &Point::low) + "Z"}});
}

void draw_curve(Markup& out, const Lines& figure, const Series& series, const LineLayout& layout) {
  out.open("g", {{"class", series_class(series)}});
  const auto place = static_cast<double>(&series - figure.series.data());
  const double middle = static_cast<double>(figure.series.size() - 1) / 2;
  const double shift = figure.markers ? dodge * (place - middle) : 0;
  if (!figure.markers) draw_band(out, series, layout);
  const std::vector<Point>& points = series.points;
  if (points.size() > 1)
    out.empty("path", {{"class", "l"}, {"d", "M" + path_of(layout, points, &Point::mean, shift)}});
  for (const Point& point : points)
    if (figure.markers || points.size() == 1) draw_point(out, point, layout.y, layout.x(point.x) + shift);
  out.close();
}

// Places of the final values in the strip, from 0 to 1. The ranks of an arm are beside it.
std::vector<double> final_places(const Lines& figure) {
  const auto is_arm = [](const Series& series) { return series.final && series.dash == 0; };
  const auto arms = static_cast<double>(std::ranges::count_if(figure.series, is_arm));
  std::vector<double> places(figure.series.size(), 0.5);
  double next = 0.5;
  for (std::size_t i = 0; i < figure.series.size(); ++i)
    if (is_arm(figure.series[i])) places[i] = next++ / arms;
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    const Series& rank = figure.series[i];
    if (rank.dash == 0) continue;
    const auto same_arm = [&](const Series& other) {
      return other.short_label == rank.short_label && is_arm(other);
    };
    const auto arm = std::ranges::find_if(figure.series, same_arm);
    if (arm == figure.series.end()) continue;
    const int side = rank.dash % 2 == 1 ? -1 : 1;
    const int distance = (rank.dash + 1) / 2;  // in steps
    const double step = std::min(0.12, 0.4 / (arms * distance));
    places[i] = places[static_cast<std::size_t>(arm - figure.series.begin())] + side * step * distance;
  }
  return places;
}

void draw_strip(Markup& out, const Lines& figure, const LineLayout& layout) {
  std::string grid;
  for (const Tick& tick : layout.strip_ticks) {
    const double y = layout.strip(tick.value);
    grid += stroke(layout.strip_left, y, layout.strip_right, y);
    draw_text(out, "s", layout.strip_right + 4, y + 3.5 * layout.scale, tick.label);
  }
  draw_strokes(out, "g", grid);
  draw_rule(out, "ax", layout.strip_left, layout.bottom, layout.strip_right, layout.bottom);
  draw_below(out, layout, (layout.strip_left + layout.strip_right) / 2, layout.bottom + 15 * layout.scale,
             figure.final_label);
  const std::vector<double> places = final_places(figure);
  const double width = layout.strip_right - layout.strip_left;
  const Series& first = figure.series.front();
  if (first.final && !first.points.empty())
    draw_rule(out, "lead", layout.right, layout.y(first.points.back().mean), layout.strip_left,
              layout.strip(first.final->mean));
  for (std::size_t i = 0; i < figure.series.size(); ++i)
    if (figure.series[i].final)
      draw_final(out, figure.series[i], layout.strip, layout.strip_left + width * places[i]);
}

LineGeometry geometry_of(const LineLayout& layout) {
  return {layout.x.pixel_low, (layout.x.pixel_high - layout.x.pixel_low) / (layout.x.high - layout.x.low),
          layout.x.low};
}

void draw_lines(Markup& out, const Lines& figure, const LineLayout& layout) {
  draw_axes(out, figure, layout);
  draw_guides(out, layout);
  // Ranks first, so that averages and the baseline lie on top.
  for (const bool ranks : {true, false}) {
    for (const Series& series : figure.series) {
      if ((series.dash > 0) == ranks) draw_curve(out, figure, series, layout);
    }
  }
  if (layout.has_strip) draw_strip(out, figure, layout);
}

}  // namespace

Drawing drawing_of(const Figure& figure, const Lines& lines, const DrawingStyle& style) {
  Drawing drawing{.width = style.width_or(panel_width),
                  .legend = legend_of(lines.series),
                  .spoken = spoken(lines.series)};
  if (!figure.missing.empty()) return drawing;
  const LineLayout layout = line_layout(lines, figure.unit, style);
  require_space(figure, style, layout.bottom - layout.top);
  drawing.height = layout.height;
  if (lines.x.title == "epoch") drawing.crosshair = geometry_of(layout);
  drawing.draw = [&lines, layout](Markup& out) { draw_lines(out, lines, layout); };
  return drawing;
}

namespace {

constexpr double usual_top = 10;
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

// Adds space at both ends. The result always has an extent above zero.
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

// Widens the range for guides while the curves keep their share of it.
void take_guides(Range& range, const Lines& figure) {
  for (const Guide& guide : figure.guides) {
    Range wider = range;
    for (const auto& [x, y] : guide.points) wider.take(y, figure.y.log);
    const double before = range.extent(figure.y.log);
    if (before > 0 && before >= least_share_of_curves * wider.extent(figure.y.log)) range = wider;
  }
}

// Range of the y axis. Intervals of few seeds can be very wide and must not squeeze the curves. They extend
// the range on each side by at most the extent of the means, and are clipped there.
Range curve_range(const Lines& figure) {
  const bool log = figure.y.log;
  Range means;
  Range all;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      means.take(point.mean, log);
      if (series.dash == 0) all.take(point, log);
    }
  }
  if (figure.margin)
    for (const double end : {figure.margin->first, 0.0, figure.margin->second}) means.take(end, log);
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
  range.high = std::min(range.high, std::max(figure.y.most, means.high));
  if (!log) range.low = std::max(range.low, figure.y.least);
  return range;
}

// Range of the strip, within the limits of the metric. Intervals may reach beyond 100 % or below zero.
Range strip_range(const Lines& figure) {
  Range range;
  for (const Series& series : figure.series) {
    if (series.final && series.dash == 0) range.take(*series.final, false);
    if (series.final) range.take(series.final->mean, false);
  }
  range = padded(range, false, 0.002);
  return {std::max(range.low, figure.y.least), std::min(range.high, figure.y.most)};
}

// As on the page, or in a sized drawing as many as have space for their labels.
std::vector<Tick> ticks_above(const Scale1D& scale, int wanted, const DrawingStyle& style) {
  const MakeTicks make = [&](int number) { return ticks(scale.low, scale.high, number, scale.log); };
  return style.sized() ? spaced_ticks(wanted, make, touching_above(scale, style.font)) : make(wanted);
}

// A tick at each value. A label that would touch the one before it is left out.
std::vector<Tick> value_ticks(const std::vector<double>& values, const Scale1D& x, const Touching& touching) {
  std::vector<Tick> result;
  std::optional<Tick> labelled;
  for (const double value : values) {
    if (value < x.low || value > x.high) continue;
    Tick tick{value, plain_number(value)};
    if (labelled && touching(*labelled, tick)) {
      tick.label.clear();
    } else {
      labelled = tick;
    }
    result.push_back(std::move(tick));
  }
  return result;
}

void lay_x(LineLayout& layout, const Lines& figure, const DrawingStyle& style) {
  Range range;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) range.take(point.x, false);
  }
  if (figure.x.from_zero) range.take(0, false);
  // A single epoch is in the middle.
  if (range.low == range.high) {
    const double middle = (layout.left + layout.right) / 2;
    layout.x = {range.low, range.low + 1, middle, middle + 1, false};
    layout.x_ticks = {{range.low, plain_number(range.low)}};
    return;
  }
  const double air = figure.markers ? 14 : 4;
  layout.x = {range.low, range.high, layout.left + air, layout.right - air, figure.x.log};
  const MakeTicks make = [&](int wanted) {
    return figure.x.integers ? integer_ticks(range.low, range.high, wanted)
                             : ticks(range.low, range.high, wanted, figure.x.log);
  };
  const Touching touching = touching_beside(layout.x, layout.axis_font, layout.width);
  layout.x_ticks = !figure.x.at.empty() ? value_ticks(figure.x.at, layout.x, touching)
                   : style.sized()      ? spaced_ticks(wanted_ticks, make, touching)
                                        : make(wanted_ticks);
}

// The part of a guide inside the axes. Interpolates linearly, on a logarithmic axis in the logarithms.
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

// Text of a label. It has the value if the guide is not drawn, or if another guide looks the same.
std::string text_of(const Guide& guide, const Lines& figure, const std::string& unit,
                    const LineLayout& layout, bool drawn) {
  const bool unique = std::ranges::count(figure.guides, guide.colour, &Guide::colour) == 1;
  if (guide.points.empty() || (drawn && unique)) return guide.label;
  const auto [x, y] = guide.points.back();
  const bool on_scale = y >= layout.y.low && y <= layout.y.high;
  const bool among_points = x >= layout.x.low && x <= layout.x.high;
  const std::string where = !drawn && !on_scale ? ", off the scale"
                            : among_points      ? ""
                                                : fmt::format(" at {} {}", figure.x.title, plain_number(x));
  return fmt::format("{}: {}{}{}", guide.label, for_table(y, 3), unit == "log scale" ? "" : " " + unit,
                     where);
}

void lay_guides(LineLayout& layout, const Lines& figure, const std::string& unit) {
  for (const Guide& guide : figure.guides) {
    Polyline line = inside(guide, layout);
    const std::string text = text_of(guide, figure, unit, layout, !line.empty());
    layout.guides.push_back({&guide, std::move(line),
                             text_lines(text, layout.width - layout.left - guide_sample, layout.guide_font)});
  }
}

// A layout with space for `rows` lines of labels of guides above the curves.
LineLayout layout_with(const Lines& figure, const std::string& unit, const DrawingStyle& style,
                       std::size_t rows) {
  LineLayout layout;
  layout.width = style.width_or(panel_width);
  layout.axis_font = style.text(usual_axis_font);
  layout.guide_font = style.text(usual_guide_font);
  layout.scale = layout.axis_font / usual_axis_font;
  const Range y = curve_range(figure);
  const double row_height = guide_row * layout.guide_font / usual_guide_font;
  layout.height = height_of_panel(style, rows, row_height);
  layout.top = usual_top * layout.scale + row_height * static_cast<double>(rows);
  layout.bottom = layout.height - below_curves * layout.scale;
  layout.y = {y.low, y.high, layout.bottom, layout.top, figure.y.log};
  layout.y_ticks = ticks_above(layout.y, wanted_ticks, style);
  layout.left = widest(layout.y_ticks, layout.axis_font) + 8;
  layout.right = layout.width - 8;
  layout.has_strip =
      std::ranges::any_of(figure.series, [](const Series& series) { return series.final.has_value(); }) &&
      (!style.sized() || has_room_for_strip(style.width, style.font));
  if (layout.has_strip) {
    const Range strip = strip_range(figure);
    layout.strip = {strip.low, strip.high, layout.bottom, layout.top, false};
    layout.strip_ticks = ticks_above(layout.strip, 4, style);
    layout.strip_right = layout.width - widest(layout.strip_ticks, layout.axis_font) - 6;
    layout.strip_left = layout.strip_right - strip_width * layout.scale;
    layout.right = layout.strip_left - gap * layout.scale;
  }
  lay_x(layout, figure, style);
  lay_guides(layout, figure, unit);
  return layout;
}

}  // namespace

LineLayout line_layout(const Lines& figure, const std::string& unit, const DrawingStyle& style) {
  const auto rows_of = [](const LineLayout& layout) {
    std::size_t rows = 0;
    for (const GuideLayout& guide : layout.guides) rows += guide.rows.size();
    return rows;
  };
  LineLayout layout = layout_with(figure, unit, style, 0);
  // Rows leave less height to the ticks, whose labels may then leave less width to the rows.
  for (std::size_t rows = 0; rows < rows_of(layout);) {
    rows = rows_of(layout);
    layout = layout_with(figure, unit, style, rows);
  }
  return layout;
}

}  // namespace trainyard::reports
