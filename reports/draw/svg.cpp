#include "reports/draw/svg.h"

#include <algorithm>

#include <fmt/format.h>

#include "reports/draw/assets.h"
#include "reports/draw/drawing.h"
#include "reports/draw/scale.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

// Sizes in files without a given size. In sized figures they grow with the font.
constexpr double title_height = 26;
constexpr double title_line = 17;
constexpr double usual_title_font = 13.5;
constexpr double usual_legend_font = 11;
constexpr double legend_line = 18;
constexpr double legend_sample = 20;
constexpr double usual_caption_font = 10.5;
constexpr double caption_line = 14;
constexpr double margin = 14;

Drawing drawing_of(const Figure& figure, const DrawingStyle& style = {}) {
  return std::visit([&](const auto& picture) { return reports::drawing_of(figure, picture, style); },
                    figure.picture);
}

const char* class_of(const Drawing& drawing) {
  return drawing.wide || drawing.width == page_width ? "chart bd" : "chart";
}

std::string view_box(double width, double height) {
  return "0 0 " + plain_number(width) + " " + plain_number(height);
}

// Text for screen readers.
std::string label_of(const Figure& figure, const Drawing& drawing) {
  return fmt::format("{}{}. Numbers below.{}", figure.title, drawing.spoken,
                     drawing.crosshair ? " Arrow keys read epochs." : "");
}

// Draws the legend in rows of the figure's width. Returns its height.
double draw_legend(Markup& out, const Drawing& drawing, const DrawingStyle& style, double y) {
  const double font = style.text(usual_legend_font);
  const double scale = font / usual_legend_font;
  const double before = (legend_sample + 4) * scale;
  double x = 0;
  double row = y + 12 * scale;
  for (const LegendEntry& entry : drawing.legend) {
    const std::vector<std::string> lines = style.sized()
                                               ? text_lines(entry.label, drawing.width - before, font)
                                               : std::vector<std::string>{entry.label};
    const double text = before + widest(lines, font);
    const bool full = x + text + (style.sized() ? 0 : 14) > drawing.width;
    if (x > 0 && full) {
      x = 0;
      row += legend_line * scale;
    }
    out.open("g", {{"class", entry.style}});
    if (entry.box) {
      out.empty("rect", {{"x", coordinate(x)},
                         {"y", coordinate(row - 10 * scale)},
                         {"width", coordinate(14 * scale)},
                         {"height", coordinate(12 * scale)}});
    } else {
      draw_rule(out, "l", x, row - 4 * scale, x + legend_sample * scale, row - 4 * scale);
    }
    out.close();
    draw_lines_of_text(out, "lg", x + before, row, legend_line * scale, lines);
    row += legend_line * scale * static_cast<double>(std::max<std::size_t>(1, lines.size()) - 1);
    x += text + 14 * scale;
  }
  return row - y + 8 * scale;
}

// Draws the caption in lines of the figure's width. Returns its height.
double draw_caption(Markup& out, const std::string& caption, double width, const DrawingStyle& style,
                    double y) {
  const double font = style.text(usual_caption_font);
  const double line = caption_line * font / usual_caption_font;
  const std::vector<std::string> lines = text_lines(caption, width, font);
  draw_lines_of_text(out, "cap", 0, y + line, line, lines);
  return line * static_cast<double>(lines.size());
}

// Width of a bold title: bold letters are about a tenth wider than in the table.
double title_width(const std::string& title) {
  return text_width(title, usual_title_font) * 1.12;
}

// Draws "subject · title unit" on one line if it fits, else the subject on a separate line. Returns the
// height.
double draw_title(Markup& out, const Figure& figure, double width) {
  const std::string whole = whole_title(figure, " · ");
  const double unit = figure.unit.empty() ? 0 : text_width(figure.unit, 12) + 8;
  const bool fits = figure.subject.empty() || title_width(whole) + unit <= width;
  const double baseline = fits ? 14 : 14 + title_line;
  if (!fits) draw_text(out, "title", 0, 14, figure.subject);
  const std::string& title = fits ? whole : figure.title;
  draw_text(out, "title", 0, baseline, title);
  draw_text(out, "unit", title_width(title) + 8, baseline, figure.unit);
  return baseline - 14 + title_height;
}

// Text above the drawing of a figure in a file: the title, or the name and unit of the values if the picture
// has no title. Returns its height.
double draw_head(Markup& out, const Figure& figure, const FigureSize& size, const DrawingStyle& style,
                 double width) {
  if (size.title && !style.sized()) return draw_title(out, figure, width);
  // The columns of a forest plot have their own names and units.
  if (!size.title && std::holds_alternative<Effects>(figure.picture)) return 0;
  const double font = style.text(size.title ? usual_title_font : 12);
  const std::string unit = figure.unit.empty() ? "" : ", " + figure.unit;
  const std::vector<std::string> lines =
      text_lines((size.title ? whole_title(figure, " · ") : figure.title) + unit, width, font,
                 size.title ? Weight::bold : Weight::normal);
  const double line = 1.25 * font;
  draw_lines_of_text(out, size.title ? "title" : "unit", 0, font, line, lines);
  return line * static_cast<double>(lines.size()) + 0.4 * font;
}

}  // namespace

std::string series_class(const Series& series) {
  return fmt::format("c-{}{}", series.colour,
                     series.dash > 0 ? fmt::format(" r r{}", (series.dash - 1) % 4) : "");
}

bool is_wide(const Figure& figure) {
  return figure.missing.empty() && drawing_of(figure).width == page_width;
}

Markup page_svg(const Figure& figure) {
  Markup out;
  if (!figure.missing.empty()) return out;
  const Drawing drawing = drawing_of(figure);
  const std::string box = view_box(drawing.width, drawing.height);
  const std::string label = label_of(figure, drawing);
  if (const auto& geometry = drawing.crosshair) {
    out.open("svg", {{"class", "chart"},
                     {"viewBox", box},
                     {"role", "img"},
                     {"tabindex", "0"},
                     {"aria-label", label},
                     {"data-x0", coordinate(geometry->first_x)},
                     {"data-dx", plain_number(geometry->step)},
                     {"data-first", plain_number(geometry->first_epoch)}});
  } else {
    out.open("svg", {{"class", class_of(drawing)}, {"viewBox", box}, {"role", "img"}, {"aria-label", label}});
  }
  drawing.draw(out);
  out.close();
  return out;
}

std::string caption_of(const Figure& figure, const FigureSize& size) {
  const bool strip = !size.sized() || has_room_for_strip(size.width, size.font);
  return figure.caption + (strip ? figure.strip_caption : "");
}

std::string svg_document(const Figure& figure, const FigureSize& size) {
  DrawingStyle style{.width = size.width, .height = 0, .font = size.font};
  Drawing drawing = drawing_of(figure, style);
  Markup head;
  const double head_height = draw_head(head, figure, size, style, drawing.width);
  // Legend and caption have the same height below a drawing of any height.
  const double space = 4 * style.text(usual_caption_font) / usual_caption_font;
  const auto draw_foot = [&](Markup& out, double top) {
    double height = draw_legend(out, drawing, style, top);
    if (size.title)
      height += draw_caption(out, caption_of(figure, size), drawing.width, style, top + height) + space;
    return height;
  };
  if (size.height > 0) {
    Markup unused;
    style.height = std::max(1.0, size.height - head_height - space - draw_foot(unused, 0));
    drawing = drawing_of(figure, style);
  }
  Markup body;
  body.add(head);
  body.open("g",
            {{"class", class_of(drawing)}, {"transform", "translate(0 " + coordinate(head_height) + ")"}});
  if (figure.missing.empty()) {
    drawing.draw(body);
  } else {
    draw_text(body, "mid", drawing.width / 2, panel_height / 2, figure.missing);
  }
  body.close();
  double height = head_height + (figure.missing.empty() ? drawing.height : panel_height) + space;
  height += draw_foot(body, height);

  const double around = style.sized() ? 0 : margin;
  const double full_width = drawing.width + 2 * around;
  const double full_height = height + 2 * around;
  Markup out;
  out.verbatim("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  out.open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                   {"class", style.sized() ? "alone sized" : "alone"},
                   {"width", plain_number(full_width)},
                   {"height", plain_number(full_height)},
                   {"viewBox", view_box(full_width, full_height)}});
  out.leaf("title", {}, whole_title(figure, " "));
  out.open("style").verbatim(figure_style_with_colours());
  if (style.sized()) out.verbatim(".alone.sized text { font-size: " + plain_number(style.font) + "px; }\n");
  out.close();
  out.empty("rect",
            {{"class", "paper"}, {"width", plain_number(full_width)}, {"height", plain_number(full_height)}});
  out.open("g", {{"transform", "translate(" + coordinate(around) + " " + coordinate(around) + ")"}});
  out.add(body).close().close().line();
  return out.str();
}

}  // namespace trainyard::reports
