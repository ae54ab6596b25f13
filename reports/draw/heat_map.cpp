// Heat maps: one rectangle per cell, with its mean as text. A stronger colour is a larger mean.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "reports/draw/drawing.h"
#include "reports/draw/scale.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

// Sizes on the page. In sized drawings they grow with the font.
constexpr double usual_map_font = 10.5;
constexpr double wide_map_font = 12;  // in drawings as wide as the page
constexpr double map_row_height = 26;
constexpr double map_line = 13;        // of text
constexpr double map_title = 10;       // baseline of the first line
constexpr double map_least_cell = 44;  // width that a value needs
// Opacity of the smallest and the largest mean. Text has a contrast of 4.5 to 1 on both.
constexpr double map_lightest = 0.06;
constexpr double map_darkest = 0.75;

double map_width(const HeatMap& map) {
  const double needed =
      widest(map.rows, usual_map_font) + 14 + map_least_cell * static_cast<double>(map.columns.size());
  return needed > panel_width ? page_width : panel_width;
}

// 0 for the smallest mean, 1 for the largest.
class Shade {
 public:
  explicit Shade(const HeatMap& map) : log_(map.log) {
    for (const Point& cell : map.cells) {
      if (cell.n == 0) continue;
      low_ = std::min(low_, level(cell.mean));
      high_ = std::max(high_, level(cell.mean));
    }
  }
  double operator()(double mean) const { return high_ > low_ ? (level(mean) - low_) / (high_ - low_) : 0.5; }

 private:
  double level(double mean) const { return log_ ? std::log(mean) : mean; }
  bool log_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

std::string cell_text(const Point& cell) {
  const std::string seeds = fmt::format("{} seed{}", cell.n, cell.n == 1 ? "" : "s");
  return has_interval(cell) ? fmt::format("{} to {}, {}", for_table(cell.low), for_table(cell.high), seeds)
                            : seeds;
}

struct MapLayout {
  double width = 0;
  double height = 0;
  double scale = 1;  // of distances around text
  double font = 0;
  std::vector<std::string> y_title;  // lines, above the names of the rows
  double left = 0;
  double top = 0;
  double bottom = 0;
  double cell = 0;  // width
  double row = 0;   // height
  LabelRows columns;
  std::vector<std::string> x_title;  // lines
  std::vector<std::string> shades;   // what the shades mean, if the cells are too narrow for their values
};

// The means of the lightest and the darkest cell.
std::string shades_text(const HeatMap& map) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const Point& cell : map.cells) {
    if (cell.n == 0) continue;
    low = std::min(low, cell.mean);
    high = std::max(high, cell.mean);
  }
  return fmt::format("lightest {}, darkest {}", for_table(low, 3), for_table(high, 3));
}

MapLayout map_layout(const HeatMap& map, const DrawingStyle& style) {
  MapLayout layout;
  layout.width = style.width_or(map_width(map));
  layout.font = style.text(layout.width == page_width ? wide_map_font : usual_map_font);
  layout.scale = style.sized() ? layout.font / usual_map_font : 1;
  const double line = map_line * layout.scale;
  layout.y_title = text_lines(map.y, layout.width, layout.font);
  layout.top = map_title * layout.scale + line * static_cast<double>(layout.y_title.size()) - line / 2;
  layout.left = widest(map.rows, layout.font) + 10 * layout.scale;
  layout.cell = (layout.width - layout.left - 4) / static_cast<double>(map.columns.size());
  layout.row = map_row_height * layout.scale;
  layout.bottom = layout.top + layout.row * static_cast<double>(map.rows.size());
  std::vector<std::pair<double, std::string>> columns;
  for (const std::string& column : map.columns)
    columns.emplace_back(layout.left + layout.cell * (static_cast<double>(columns.size()) + 0.5), column);
  layout.columns = label_rows(columns, layout.width, layout.font);
  layout.x_title = text_lines(map.x, layout.width, layout.font);
  const bool narrow = std::ranges::any_of(map.cells, [&](const Point& cell) {
    return cell.n > 0 && text_width(for_table(cell.mean, 3), layout.font) + 4 > layout.cell;
  });
  if (narrow) layout.shades = text_lines(shades_text(map), layout.width, layout.font);
  const auto lines = layout.columns.height() + layout.x_title.size() + layout.shades.size();
  layout.height = layout.bottom + line * (static_cast<double>(lines) + 0.8);
  return layout;
}

void draw_cell(Markup& out, const HeatMap& map, std::size_t row, std::size_t column, const Shade& shade,
               const MapLayout& layout) {
  const Point& cell = map.cells[row * map.columns.size() + column];
  const double x = layout.left + layout.cell * static_cast<double>(column);
  const double y = layout.bottom - layout.row * static_cast<double>(row + 1);
  const double baseline = y + layout.row / 2 + 4 * layout.scale;
  if (cell.n == 0) {
    draw_text(out, "mid", x + layout.cell / 2, baseline, "–");
    return;
  }
  const double opacity = map_lightest + (map_darkest - map_lightest) * shade(cell.mean);
  out.open("rect", {{"class", "hm"},
                    {"x", coordinate(x)},
                    {"y", coordinate(y)},
                    {"width", coordinate(layout.cell)},
                    {"height", coordinate(layout.row)},
                    {"fill-opacity", decimals(opacity, 3)}});
  out.leaf("title", {},
           fmt::format("{} {}, {} {}: {} ({})", map.x, map.columns[column], map.y, map.rows[row],
                       for_table(cell.mean), cell_text(cell)));
  out.close();
  if (layout.shades.empty()) draw_text(out, "mid hv", x + layout.cell / 2, baseline, for_table(cell.mean, 3));
}

void draw_map(Markup& out, const HeatMap& map, const MapLayout& layout) {
  const Shade shade(map);
  const double line = map_line * layout.scale;
  draw_lines_of_text(out, "s", 0, map_title * layout.scale, line, layout.y_title);
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const double y = layout.bottom - layout.row * (static_cast<double>(row) + 0.5);
    draw_text(out, "e", layout.left - 6, y + 4 * layout.scale, map.rows[row]);
    for (std::size_t column = 0; column < map.columns.size(); ++column)
      draw_cell(out, map, row, column, shade, layout);
  }
  double y = layout.bottom + 14 * layout.scale;
  draw_label_rows(out, layout.columns, y, line, layout.width, layout.font);
  y += line * static_cast<double>(layout.columns.height());
  for (const std::string& text : layout.x_title) {
    draw_text(out, "mid", middle_inside((layout.left + layout.width) / 2, text, layout.font, layout.width), y,
              text);
    y += line;
  }
  draw_lines_of_text(out, "s", 0, y, line, layout.shades);
}

}  // namespace

Drawing drawing_of(const Figure& figure, const HeatMap& map, const DrawingStyle& style) {
  Drawing drawing;
  drawing.width = style.width_or(map_width(map));
  if (!figure.missing.empty()) return drawing;
  const MapLayout layout = map_layout(map, style);
  drawing.height = layout.height;
  for (std::size_t i = 0; i < map.cells.size(); ++i)
    if (map.cells[i].n > 0)
      drawing.spoken += fmt::format("; {} {}, {} {}: {}", map.x, map.columns[i % map.columns.size()], map.y,
                                    map.rows[i / map.columns.size()], for_table(map.cells[i].mean));
  drawing.draw = [&map, layout](Markup& out) { draw_map(out, map, layout); };
  return drawing;
}

}  // namespace trainyard::reports
