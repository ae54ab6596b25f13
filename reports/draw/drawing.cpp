#include "reports/draw/drawing.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
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

void draw_lines_of_text(Markup& out, const char* style, double x, double y, double line_height,
                        const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    draw_text(out, style, x, y, line);
    y += line_height;
  }
}

double height_of_panel(const DrawingStyle& style, std::size_t rows, double row_height) {
  if (!style.sized()) return panel_height;
  return style.height > 0 ? style.height : 0.6 * style.width + static_cast<double>(rows) * row_height;
}

void require_space(const Figure& figure, const DrawingStyle& style, double space) {
  if (!style.sized() || space >= 4 * style.font) return;
  throw UserError(fmt::format("figure {} has no space for its curves or bars in this height", figure.slug),
                  "give a larger --height, a smaller --font-size, or no --height");
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

}  // namespace trainyard::reports
