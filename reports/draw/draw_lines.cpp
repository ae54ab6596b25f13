// Curves with bands, and at the right a strip with the final values on a scale of their own: on the curves
// their differences cannot be seen.
#include <algorithm>
#include <cmath>

#include "reports/draw/drawing.h"
#include "reports/draw/line_layout.h"
#include "reports/draw/svg.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

constexpr double bottom = line_bottom;
constexpr double dodge = 6;  // pixels between markers of arms at the same place

void draw_axes(Markup& out, const Figure& figure, const LineLayout& layout) {
  std::string grid;
  for (const Tick& tick : layout.y_ticks) {
    const double y = layout.y(tick.value);
    grid += stroke(layout.left, y, layout.right, y);
    draw_text(out, "e", layout.left - 5, y + 3.5, tick.label);
  }
  draw_strokes(out, "g", grid);
  std::string axis = stroke(layout.left, bottom, layout.right, bottom);
  for (const Tick& tick : layout.x_ticks) {
    const double x = layout.x(tick.value);
    axis += stroke(x, bottom, x, bottom + 4);
    draw_text(out, "mid", x, bottom + 15, tick.label);
  }
  draw_strokes(out, "ax", axis);
  draw_text(out, "mid", (layout.left + layout.right) / 2, bottom + 28, figure.x.title);
}

// The line, a ring where it is known at a single place, its label.
void draw_guide(Markup& out, const GuideLayout& guide, const LineLayout& layout, double row) {
  out.open("g", {{"class", "gd gd-" + guide.guide->colour}});
  std::string path;
  for (const auto& [x, y] : guide.line)
    path += (path.empty() ? "M" : " ") + coordinate(x) + "," + coordinate(y);
  if (guide.line.size() > 1) out.empty("path", {{"class", "gl"}, {"d", path}});
  if (guide.line.size() == 1)
    out.empty("circle", {{"class", "gl"},
                         {"cx", coordinate(guide.line.front().first)},
                         {"cy", coordinate(guide.line.front().second)},
                         {"r", "3"}});
  if (guide.label) {
    draw_text(out, "gt", guide.label->first, guide.label->second, guide.text);
  } else {
    draw_rule(out, "gl", layout.left, row - 3, layout.left + 14, row - 3);
    draw_text(out, "gt", layout.left + 18, row, guide.text);
  }
  out.close();
}

void draw_guides(Markup& out, const LineLayout& layout) {
  double row = 8;
  for (const GuideLayout& guide : layout.guides) {
    draw_guide(out, guide, layout, row);
    if (!guide.label) row += 13;
  }
}

std::string path_of(const LineLayout& layout, const std::vector<const Point*>& points, double Point::*value,
                    double shift = 0) {
  std::string path;
  for (const Point* point : points) {
    path += (path.empty() ? "" : " ") + coordinate(layout.x(point->x) + shift) + "," +
            coordinate(layout.y(point->*value));
  }
  return path;
}

void draw_band(Markup& out, const Series& series, const LineLayout& layout) {
  std::vector<const Point*> points;
  for (const Point& point : series.points) {
    if (has_interval(point)) points.push_back(&point);
  }
  if (points.size() < 2 || series.dash > 0) return;
  const std::string upper = path_of(layout, points, &Point::high);
  std::ranges::reverse(points);
  out.empty("path", {{"class", "b"}, {"d", "M" + upper + " L" + path_of(layout, points, &Point::low) + "Z"}});
}

void draw_marker(Markup& out, const Point& point, const LineLayout& layout, double shift) {
  const double x = layout.x(point.x) + shift;
  if (has_interval(point)) draw_rule(out, "eb", x, layout.y(point.low), x, layout.y(point.high));
  out.empty("circle",
            {{"class", "d"}, {"cx", coordinate(x)}, {"cy", coordinate(layout.y(point.mean))}, {"r", "2.7"}});
}

void draw_curve(Markup& out, const Figure& figure, const Series& series, const LineLayout& layout) {
  out.open("g", {{"class", series_class(series)}});
  const auto place = static_cast<double>(&series - figure.series.data());
  const double middle = static_cast<double>(figure.series.size() - 1) / 2;
  const double shift = figure.markers ? dodge * (place - middle) : 0;
  if (!figure.markers) draw_band(out, series, layout);
  std::vector<const Point*> points;
  points.reserve(series.points.size());
  for (const Point& point : series.points) points.push_back(&point);
  if (points.size() > 1)
    out.empty("path", {{"class", "l"}, {"d", "M" + path_of(layout, points, &Point::mean, shift)}});
  for (const Point* point : points) {
    if (figure.markers || points.size() == 1) draw_marker(out, *point, layout, shift);
  }
  out.close();
}

void draw_final(Markup& out, const Series& series, const LineLayout& layout, double x) {
  const Point& point = *series.final;
  out.open("g", {{"class", series_class(series)}});
  if (has_interval(point)) draw_rule(out, "eb", x, layout.strip(point.low), x, layout.strip(point.high));
  out.empty(
      "circle",
      {{"class", "d"}, {"cx", coordinate(x)}, {"cy", coordinate(layout.strip(point.mean))}, {"r", "2.7"}});
  out.close();
}

void draw_strip(Markup& out, const Figure& figure, const LineLayout& layout) {
  std::string grid;
  for (const Tick& tick : layout.strip_ticks) {
    const double y = layout.strip(tick.value);
    grid += stroke(layout.strip_left, y, layout.strip_right, y);
    draw_text(out, "s", layout.strip_right + 4, y + 3.5, tick.label);
  }
  draw_strokes(out, "g", grid);
  draw_rule(out, "ax", layout.strip_left, bottom, layout.strip_right, bottom);
  draw_text(out, "mid", (layout.strip_left + layout.strip_right) / 2, bottom + 15, figure.final_label);
  const auto count = static_cast<double>(
      std::ranges::count_if(figure.series, [](const Series& series) { return series.final.has_value(); }));
  double place = 0.5;
  for (const Series& series : figure.series) {
    if (!series.final) continue;
    const double x = layout.strip_left + (layout.strip_right - layout.strip_left) * place / count;
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
  const LineLayout layout = line_layout(figure);
  return {layout.x.pixel_low, (layout.x.pixel_high - layout.x.pixel_low) / (layout.x.high - layout.x.low),
          layout.x.low};
}

void draw_lines(Markup& out, const Figure& figure) {
  const LineLayout layout = line_layout(figure);
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

}  // namespace trainyard::reports
