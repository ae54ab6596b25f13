// Labels of guides beside their lines, where they touch neither a curve nor one another.
#include <algorithm>
#include <array>
#include <cmath>

#include "reports/draw/line_layout.h"
#include "reports/draw/text_width.h"

namespace trainyard::reports {

namespace {

constexpr double size = 9.5;
constexpr double air = 2;

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// Liang and Barsky 1984: does any part of the segment lie in the box?
bool crosses(const Box& box, std::pair<double, double> from, std::pair<double, double> to) {
  double enter = 0;
  double leave = 1;
  const double dx = to.first - from.first;
  const double dy = to.second - from.second;
  const std::array<std::pair<double, double>, 4> edges{{{-dx, from.first - box.left},
                                                        {dx, box.right - from.first},
                                                        {-dy, from.second - box.top},
                                                        {dy, box.bottom - from.second}}};
  for (const auto& [direction, distance] : edges) {
    if (direction == 0) {
      if (distance < 0) return false;
      continue;
    }
    const double at = distance / direction;
    if (direction < 0) enter = std::max(enter, at);
    if (direction > 0) leave = std::min(leave, at);
  }
  return enter <= leave;
}

bool touches(const Box& box, const Polyline& line) {
  if (line.size() == 1) return crosses(box, line.front(), line.front());
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (crosses(box, line[i - 1], line[i])) return true;
  }
  return false;
}

Polyline curve_of(const LineLayout& layout, const Series& series, double Point::*value) {
  Polyline line;
  for (const Point& point : series.points) {
    if (std::isfinite(point.*value)) line.emplace_back(layout.x(point.x), layout.y(point.*value));
  }
  return line;
}

std::vector<Polyline> obstacles(const LineLayout& layout, const Figure& figure) {
  std::vector<Polyline> lines;
  for (const Series& series : figure.series) {
    for (double Point::*value : {&Point::mean, &Point::low, &Point::high})
      lines.push_back(curve_of(layout, series, value));
  }
  // Intervals of markers, which stand a little beside their place.
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      if (!figure.markers || !std::isfinite(point.low)) continue;
      for (const double beside : {-10.0, -5.0, 0.0, 5.0, 10.0})
        lines.push_back({{layout.x(point.x) + beside, layout.y(point.low)},
                         {layout.x(point.x) + beside, layout.y(point.high)}});
    }
  }
  for (const GuideLayout& guide : layout.guides) lines.push_back(guide.line);
  return lines;
}

// Left ends of baselines beside the line: near its right end first, above before below.
Polyline candidates(const GuideLayout& guide, const LineLayout& layout, double width) {
  Polyline places;
  const double first = layout.left + air;
  const double last = layout.right - width - air;
  if (last < first) return places;
  for (const double distance : {5.0, 9.0, 14.0}) {
    for (const double share : {1.0, 0.0, 0.5, 0.75, 0.25}) {
      const double x = first + share * (last - first);
      for (const auto& [at, y] : guide.line) {
        const bool near = at >= x - 2 && at <= x + width + 2;
        const bool level = guide.line.front().second == guide.line.back().second;
        if (!near && !level) continue;
        places.emplace_back(x, y - distance);
        places.emplace_back(x, y + distance + 6);
      }
    }
  }
  return places;
}

}  // namespace

void place_guide_labels(LineLayout& layout, const Figure& figure) {
  const std::vector<Polyline> lines = obstacles(layout, figure);
  std::vector<Box> taken;
  for (GuideLayout& guide : layout.guides) {
    const double width = text_width(guide.text, size);
    for (const auto& [x, baseline] : candidates(guide, layout, width)) {
      const Box box{x - air, baseline - size, x + width + air, baseline + 3};
      const bool inside = box.top >= layout.top - 8 && box.bottom <= line_bottom;
      const bool free =
          std::ranges::none_of(lines, [&](const Polyline& line) { return touches(box, line); }) &&
          std::ranges::none_of(taken, [&](const Box& other) { return box.meets(other); });
      if (!inside || !free) continue;
      guide.label = std::pair{x, baseline};
      taken.push_back(box);
      break;
    }
  }
}

}  // namespace trainyard::reports
