#include "reports/draw/drawing.h"

#include <algorithm>
#include <cmath>
#include <set>

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

void draw_rectangle(Markup& out, const std::string& style, double x, double y, double width, double height,
                    const std::string& title) {
  const Markup::Attributes attributes{{"class", style},
                                      {"x", coordinate(x)},
                                      {"y", coordinate(y)},
                                      {"width", coordinate(width)},
                                      {"height", coordinate(height)}};
  title.empty() ? out.empty("rect", attributes)
                : out.open("rect", attributes).leaf("title", {}, title).close();
}

void draw_circle(Markup& out, const char* style, double x, double y, double radius) {
  out.empty("circle",
            {{"class", style}, {"cx", coordinate(x)}, {"cy", coordinate(y)}, {"r", coordinate(radius)}});
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

std::size_t LabelRows::height() const {
  std::size_t lines = 0;
  for (const std::size_t height : heights) lines += height;
  return lines;
}

namespace {

std::string with_interval(const Point& point) {
  std::string text = for_table(point.mean);
  if (has_interval(point)) text += fmt::format(" ({} to {})", for_table(point.low), for_table(point.high));
  return text;
}

// Whether a label touches the next one in its row.
bool labels_touch(const LabelRows& all, double width, double font) {
  const auto ends = [&](const LabelRows::Label& label) {
    const double half = widest(label.lines, font) / 2;
    const double middle = std::clamp(label.middle, half, std::max(half, width - half));
    return std::pair{middle - half, middle + half};
  };
  for (std::size_t i = all.rows; i < all.labels.size(); ++i)
    if (ends(all.labels[i - all.rows]).second + 0.4 * font > ends(all.labels[i]).first) return true;
  return false;
}

}  // namespace

LabelRows label_rows(const std::vector<std::pair<double, std::string>>& labels, double width, double font) {
  LabelRows all;
  for (const auto& [middle, text] : labels) all.labels.push_back({middle, text_lines(text, width / 2, font)});
  while (labels_touch(all, width, font)) ++all.rows;
  all.heights.assign(labels.empty() ? 0 : all.rows, 1);
  for (std::size_t i = 0; i < labels.size(); ++i)
    all.heights[i % all.rows] = std::max(all.heights[i % all.rows], all.labels[i].lines.size());
  return all;
}

void draw_label_rows(Markup& out, const LabelRows& all, double y, double line_height, double width,
                     double font) {
  for (std::size_t i = 0; i < all.labels.size(); ++i) {
    double baseline = y;
    for (std::size_t row = 0; row < i % all.rows; ++row)
      baseline += line_height * static_cast<double>(all.heights[row]);
    for (const std::string& line : all.labels[i].lines) {
      draw_text(out, "mid", middle_inside(all.labels[i].middle, line, font, width), baseline, line);
      baseline += line_height;
    }
  }
}

bool has_interval(const Point& point) {
  return std::isfinite(point.low) && std::isfinite(point.high);
}

void draw_point(Markup& out, const Point& point, const Scale1D& y, double x) {
  if (has_interval(point)) draw_rule(out, "eb", x, y(point.low), x, y(point.high));
  draw_circle(out, "d", x, y(point.mean), 2.7);
}

void draw_final(Markup& out, const Series& series, const Scale1D& y, double x) {
  out.open("g", {{"class", series_class(series)}});
  draw_point(out, *series.final, y, x);
  out.close();
}

std::vector<LegendEntry> legend_of(const std::vector<Series>& series) {
  std::vector<LegendEntry> entries;
  entries.reserve(series.size());
  std::set<std::string> seen;
  for (const Series& one : series)
    if (seen.insert(one.key).second) entries.push_back({one.label, series_class(one)});
  return entries;
}

std::string spoken(const std::vector<Series>& series) {
  std::string text;
  for (const Series& one : series) {
    if (one.dash > 0) continue;
    if (one.final) text += fmt::format("; {} {}", one.label, with_interval(*one.final));
    if (one.final || one.points.empty()) continue;
    text += fmt::format("; {} ends at {}", one.label, with_interval(one.points.back()));
  }
  return text;
}

}  // namespace trainyard::reports
