#include <algorithm>

#include <fmt/format.h>

#include "reports/draw/drawing.h"
#include "reports/draw/scale.h"
#include "reports/draw/svg.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

// Sizes on the page. In sized drawings they grow with the font.
constexpr double usual_label_font = 10.5;
constexpr double wide_label_font = 12;  // in drawings as wide as the page
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
    const bool reaches = series.dash == 0 && has_interval(*series.final);
    high = std::max({high, series.final->mean, reaches ? series.final->high : 0});
  }
  // Guides may stretch the axis until the bars have only half of the height.
  for (const Guide& guide : bars.guides) {
    const double value = guide.points.empty() ? 0 : guide.points.front().second;
    if (value <= 2 * means) high = std::max(high, value);
  }
  // Cut intervals at twice the height of the bars: with two seeds they can be ten times as high.
  return high > 0 ? std::min(high, 2 * means) * 1.04 : 1;
}

// Many groups, or groups with long names, need the width of the page.
double width_on_page(const Bars& figure) {
  const auto count = static_cast<double>(figure.series.size());
  const bool wide = std::ranges::any_of(figure.groups, [&](const BarGroup& group) {
    const double room = (panel_width - 40) * static_cast<double>(group.bars) / count - 8;
    return text_width(group.name, usual_label_font) > room;
  });
  return wide || figure.groups.size() > 4 ? page_width : panel_width;
}

struct BarLayout {
  double width = panel_width;
  double height = panel_height;
  double scale = 1;  // of distances around labels; grows with the font of sized drawings
  double font = 0;
  double guide_font = 0;
  std::vector<std::vector<std::string>> guides;  // lines of their labels
  Scale1D y;
  std::vector<Tick> ticks;
  double left = 0;
  double right = 0;
  std::vector<const Series*> bars;
  double step = 0;
  LabelRows names;   // of the bars; empty in groups without space for them, because the legend has them
  LabelRows groups;  // names of the groups, below
};

double middle_of(const BarLayout& layout, std::size_t bar) {
  return layout.left + (static_cast<double>(bar) + 0.5) * layout.step;
}

void draw_names(Markup& out, const Bars& figure, const BarLayout& layout) {
  const double row = name_row * layout.scale;
  double y = layout.y.pixel_low + below_names * layout.scale;
  draw_label_rows(out, layout.names, y, row, layout.width, layout.font);
  y += row * static_cast<double>(layout.names.height());
  draw_label_rows(out, layout.groups, y, row, layout.width, layout.font);
  double first = layout.left;
  for (const BarGroup& group : figure.groups) {
    if (first > layout.left) draw_rule(out, "g", first, layout.y.pixel_high, first, layout.y.pixel_low);
    first += static_cast<double>(group.bars) * layout.step;
  }
}

void draw_bar(Markup& out, const Series& series, const Scale1D& y, double center, double width) {
  const Point& point = *series.final;
  out.open("g", {{"class", series_class(series)}});
  draw_rectangle(out, "bar", center - width / 2, y(point.mean), width, y(0) - y(point.mean));
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

// Sets the names of bars and groups. On the page, bars without groups have one or two rows of names.
void lay_names(BarLayout& layout, const Bars& figure, const DrawingStyle& style) {
  std::vector<std::pair<double, std::string>> names;
  bool touching = false;
  for (std::size_t i = 0; i < layout.bars.size(); ++i) {
    names.emplace_back(middle_of(layout, i), layout.bars[i]->short_label);
    touching = touching || text_width(names.back().second, layout.font) > layout.step - 4;
  }
  if (!figure.groups.empty()) {
    if (!touching) layout.names = label_rows(names, layout.width, layout.font);
    std::vector<std::pair<double, std::string>> groups;
    double first = 0;
    for (const BarGroup& group : figure.groups) {
      const auto bars = static_cast<double>(group.bars);
      groups.emplace_back(layout.left + (first + bars / 2) * layout.step, group.name);
      first += bars;
    }
    layout.groups = label_rows(groups, layout.width, layout.font);
  } else if (style.sized()) {
    layout.names = label_rows(names, layout.width, layout.font);
  } else {
    layout.names.rows = touching ? 2 : 1;
    for (const auto& [middle, name] : names) layout.names.labels.push_back({middle, {name}});
    layout.names.heights = {1, 1};
  }
}

// Ticks need the height, names and guides need the width that tick labels leave. The first pass assumes the
// usual ticks.
BarLayout bar_layout(const Bars& figure, const std::string& unit, const DrawingStyle& style) {
  BarLayout layout;
  layout.width = style.width_or(width_on_page(figure));
  layout.font = style.text(layout.width == page_width ? wide_label_font : usual_label_font);
  layout.guide_font = style.text(usual_guide_label_font);
  layout.scale = style.sized() ? layout.font / usual_label_font : 1;
  for (const Series& series : figure.series) {
    if (series.final && series.dash == 0) layout.bars.push_back(&series);
  }
  const double high = highest(figure);
  layout.ticks = ticks(0, high, 5, false);
  layout.left = widest(layout.ticks, layout.font) + 8;
  layout.right = layout.width - 8;
  layout.step =
      (layout.right - layout.left) / static_cast<double>(std::max<std::size_t>(1, layout.bars.size()));
  lay_names(layout, figure, style);
  std::size_t guide_rows = 0;
  for (const Guide& guide : figure.guides) {
    const std::string text = guide_text(guide, unit, high);
    layout.guides.push_back(
        style.sized() ? text_lines(text, layout.width - layout.left - bar_guide_sample, layout.guide_font)
                      : std::vector<std::string>{text});
    guide_rows += layout.guides.back().size();
  }
  const std::size_t name_rows = layout.names.height() + layout.groups.height();
  const double guide_row = bar_guide_row * layout.guide_font / usual_guide_label_font;
  layout.height = height_of_panel(style, guide_rows + std::max<std::size_t>(1, name_rows) - 1, guide_row);
  if (!style.sized() && name_rows > 2) layout.height += name_row * static_cast<double>(name_rows - 2);
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
  const double width = std::min(44.0, 0.62 * layout.step);
  for (std::size_t i = 0; i < layout.bars.size(); ++i) {
    const Series& bar = *layout.bars[i];
    const double middle = middle_of(layout, i);
    draw_bar(out, bar, layout.y, middle, width);
    for (const Series& rank : figure.series) {  // a point on the bar of its arm
      if (!rank.final || rank.dash == 0 || rank.short_label != bar.short_label) continue;
      const int side = rank.dash % 2 == 1 ? -1 : 1, place = (rank.dash + 1) / 2;
      draw_final(out, rank, layout.y, middle + side * width / 6 * place);
    }
  }
  draw_bar_guides(out, figure, layout);
  draw_rule(out, "ax", layout.left, layout.y.pixel_low, layout.right, layout.y.pixel_low);
  draw_names(out, figure, layout);
}

// Bars of one colour have their names below.
std::vector<LegendEntry> legend_by_colour(const std::vector<Series>& series) {
  const bool one_class = std::ranges::all_of(
      series, [&](const Series& one) { return series_class(one) == series_class(series.front()); });
  return one_class && series.size() > 1 ? std::vector<LegendEntry>() : legend_of(series);
}

}  // namespace

Drawing drawing_of(const Figure& figure, const Bars& bars, const DrawingStyle& style) {
  Drawing drawing{.width = style.width_or(width_on_page(bars)),
                  .legend = legend_by_colour(bars.series),
                  .spoken = spoken(bars.series)};
  if (!figure.missing.empty()) return drawing;
  const BarLayout layout = bar_layout(bars, figure.unit, style);
  require_space(figure, style, layout.y.pixel_low - layout.y.pixel_high);
  drawing.height = layout.height;
  drawing.draw = [&bars, layout](Markup& out) { draw_bars(out, bars, layout); };
  return drawing;
}

}  // namespace trainyard::reports
