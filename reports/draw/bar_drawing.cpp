#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reports/draw/drawing.h"
#include "reports/draw/scale.h"
#include "reports/draw/svg.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

// Sizes on the page. In sized drawings they grow with the font.
constexpr double usual_label_font = 10.5;
constexpr double usual_guide_label_font = 9.5;
constexpr double bars_top = 10;
constexpr double bar_guide_row = 13;
constexpr double bar_guide_sample = 18;
constexpr double name_row = 13;
constexpr double below_names = 14;

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

// The names under the bars: in several rows if they would touch. A long name has several lines.
struct Names {
  std::size_t rows = 2;                         // bars 0, 2, 4 … have their names in the first of two rows
  std::vector<std::vector<std::string>> lines;  // per bar
  std::vector<std::size_t> heights;             // per row, in lines
};

Names names_on_page(const std::vector<const Series*>& bars, double step) {
  Names names{.rows = 1, .lines = {}, .heights = {1, 1}};
  for (const Series* series : bars) {
    names.lines.push_back({series->short_label});
    if (text_width(series->short_label, usual_label_font) > step - 4) names.rows = 2;
  }
  return names;
}

// Whether a name touches the next one in its row. `step`: from one bar to the next.
bool names_touch(const Names& names, double left, double step, double width, double font) {
  const auto ends = [&](std::size_t i) {
    const double half = widest(names.lines[i], font) / 2;
    const double middle =
        std::clamp(left + (static_cast<double>(i) + 0.5) * step, half, std::max(half, width - half));
    return std::pair{middle - half, middle + half};
  };
  for (std::size_t i = names.rows; i < names.lines.size(); ++i)
    if (ends(i - names.rows).second + 0.4 * font > ends(i).first) return true;
  return false;
}

Names sized_names(const std::vector<const Series*>& bars, double left, double step, double width,
                  double font) {
  Names names;
  for (const Series* series : bars) names.lines.push_back(text_lines(series->short_label, width / 2, font));
  for (names.rows = 1; names_touch(names, left, step, width, font);) ++names.rows;
  names.heights.assign(names.rows, 1);
  for (std::size_t i = 0; i < bars.size(); ++i)
    names.heights[i % names.rows] = std::max(names.heights[i % names.rows], names.lines[i].size());
  return names;
}

struct BarLayout {
  double width = panel_width;
  double height = panel_height;
  double scale = 1;  // of distances around labels: their font size over that on the page
  double font = 0;
  double guide_font = 0;
  std::vector<std::vector<std::string>> guides;  // lines of their labels
  Scale1D y;
  std::vector<Tick> ticks;
  double left = 0;
  double right = 0;
  std::vector<const Series*> bars;
  double step = 0;
  Names names;
};

void draw_names(Markup& out, const BarLayout& layout) {
  for (std::size_t i = 0; i < layout.bars.size(); ++i) {
    double y = layout.y.pixel_low + below_names * layout.scale;
    for (std::size_t row = 0; row < i % layout.names.rows; ++row)
      y += name_row * layout.scale * static_cast<double>(layout.names.heights[row]);
    for (const std::string& line : layout.names.lines[i]) {
      const double middle = layout.left + (static_cast<double>(i) + 0.5) * layout.step;
      draw_text(out, "mid", middle_inside(middle, line, layout.font, layout.width), y, line);
      y += name_row * layout.scale;
    }
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

std::string guide_text(const Guide& guide, const std::string& unit, double highest) {
  const double value = guide.points.front().second;
  return fmt::format("{}: {} {}{}", guide.label, for_table(value, 3), unit,
                     value <= highest ? "" : ", off the scale");
}

// Draws guides as lines across all bars, with labels in rows above the bars.
void draw_bar_guides(Markup& out, const Bars& bars, const BarLayout& layout) {
  const double scale = layout.guide_font / usual_guide_label_font;
  double row = 8 * scale;
  for (std::size_t i = 0; i < bars.guides.size(); ++i) {
    const Guide& guide = bars.guides[i];
    const double value = guide.points.front().second;
    out.open("g", {{"class", "gd gd-" + guide.colour}});
    if (value <= layout.y.high)
      draw_rule(out, "gl", layout.left, layout.y(value), layout.right, layout.y(value));
    draw_rule(out, "gl", layout.left, row - 3, layout.left + 14, row - 3);
    draw_lines_of_text(out, "gt", layout.left + bar_guide_sample, row, bar_guide_row * scale,
                       layout.guides[i]);
    out.close();
    row += bar_guide_row * scale * static_cast<double>(layout.guides[i].size());
  }
}

double widest_tick(const std::vector<Tick>& all, double font) {
  double width = 0;
  for (const Tick& tick : all) width = std::max(width, text_width(tick.label, font));
  return width;
}

// Ticks need the height, names and guides need the width that tick labels leave. The first pass assumes the
// usual ticks.
BarLayout bar_layout(const Bars& figure, const std::string& unit, const DrawingStyle& style) {
  BarLayout layout;
  layout.width = style.width_or(panel_width);
  layout.font = style.text(usual_label_font);
  layout.guide_font = style.text(usual_guide_label_font);
  layout.scale = layout.font / usual_label_font;
  for (const Series& series : figure.series) {
    if (series.final) layout.bars.push_back(&series);
  }
  const double high = highest(figure);
  layout.ticks = ticks(0, high, 5, false);
  layout.left = widest_tick(layout.ticks, layout.font) + 8;
  layout.right = layout.width - 8;
  layout.step =
      (layout.right - layout.left) / static_cast<double>(std::max<std::size_t>(1, layout.bars.size()));
  layout.names = style.sized() ? sized_names(layout.bars, layout.left, layout.step, layout.width, layout.font)
                               : names_on_page(layout.bars, layout.step);
  std::size_t guide_rows = 0;
  for (const Guide& guide : figure.guides) {
    const std::string text = guide_text(guide, unit, high);
    layout.guides.push_back(
        style.sized() ? text_lines(text, layout.width - layout.left - bar_guide_sample, layout.guide_font)
                      : std::vector<std::string>{text});
    guide_rows += layout.guides.back().size();
  }
  std::size_t name_rows = 0;
  for (const std::size_t height : layout.names.heights) name_rows += height;
  const double guide_row = bar_guide_row * layout.guide_font / usual_guide_label_font;
  layout.height = height_of_panel(style, guide_rows + name_rows - 1, guide_row);
  const double bottom =
      layout.height - layout.scale * (below_names + name_row * static_cast<double>(name_rows));
  const double top = bars_top * layout.scale + guide_row * static_cast<double>(guide_rows);
  layout.y = {0, high, bottom, top, false};
  if (style.sized())
    layout.ticks = spaced_ticks(
        5, [&](int wanted) { return ticks(0, high, wanted, false); }, touching_above(layout.y, layout.font));
  return layout;
}

void draw_bars(Markup& out, const Bars& figure, const BarLayout& layout) {
  for (const Tick& tick : layout.ticks) {
    const double y = layout.y(tick.value);
    draw_rule(out, "g", layout.left, y, layout.right, y);
    draw_text(out, "e", layout.left - 5, y + 3.5 * layout.scale, tick.label);
  }
  for (std::size_t i = 0; i < layout.bars.size(); ++i) {
    const double middle = layout.left + (static_cast<double>(i) + 0.5) * layout.step;
    draw_bar(out, *layout.bars[i], layout.y, middle, std::min(44.0, 0.62 * layout.step));
  }
  draw_bar_guides(out, figure, layout);
  draw_rule(out, "ax", layout.left, layout.y.pixel_low, layout.right, layout.y.pixel_low);
  draw_names(out, layout);
}

}  // namespace

Drawing drawing_of(const Figure& figure, const Bars& bars, const DrawingStyle& style) {
  Drawing drawing{.width = style.width_or(panel_width),
                  .legend = legend_of(bars.series),
                  .spoken = spoken(bars.series),
                  .crosshair = {},
                  .draw = {}};
  if (!figure.missing.empty()) return drawing;
  const BarLayout layout = bar_layout(bars, figure.unit, style);
  require_space(figure, style, layout.y.pixel_low - layout.y.pixel_high);
  drawing.height = layout.height;
  drawing.draw = [&bars, layout](Markup& out) { draw_bars(out, bars, layout); };
  return drawing;
}

}  // namespace trainyard::reports
