#include "reports/draw/svg.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reports/draw/assets.h"
#include "reports/draw/drawing.h"
#include "reports/draw/scale.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

constexpr double title_height = 26;
constexpr double legend_line = 18;
constexpr double margin = 14;

Drawing drawing_of(const Figure& figure, const DrawingStyle& style = {}) {
  return std::visit([&](const auto& picture) { return reports::drawing_of(figure, picture, style); },
                    figure.picture);
}

const char* class_of(const Drawing& drawing) {
  return drawing.width == page_width ? "chart bd" : "chart";
}

std::string view_box(double width, double height) {
  return "0 0 " + coordinate(width) + " " + coordinate(height);
}

// Text for screen readers.
std::string label_of(const Figure& figure, const Drawing& drawing) {
  return fmt::format("{}{}. Numbers below.{}", figure.title, drawing.spoken,
                     drawing.crosshair ? " Arrow keys read epochs." : "");
}

// Draws the legend in rows of the figure's width. Returns its height.
double draw_legend(Markup& out, const Drawing& drawing, double y) {
  double x = 0;
  double row = y + 12;
  for (const LegendEntry& entry : drawing.legend) {
    const double needed = 24 + text_width(entry.label, 11) + 14;
    if (x > 0 && x + needed > drawing.width) {
      x = 0;
      row += legend_line;
    }
    out.open("g", {{"class", entry.style}});
    if (entry.box) {
      out.empty("rect",
                {{"x", coordinate(x)}, {"y", coordinate(row - 10)}, {"width", "14"}, {"height", "12"}});
    } else {
      draw_rule(out, "l", x, row - 4, x + 20, row - 4);
    }
    out.close();
    draw_text(out, "lg", x + 24, row, entry.label);
    x += needed;
  }
  return row - y + 8;
}

// Draws the caption in lines of the figure's width. Returns its height.
double draw_caption(Markup& out, const std::string& caption, double width, double y) {
  std::string line;
  double row = y;
  const auto flush = [&] {
    if (line.empty()) return;
    row += 14;
    draw_text(out, "cap", 0, row, line);
    line.clear();
  };
  std::string word;
  for (const char character : caption + " ") {
    if (character != ' ') {
      word += character;
      continue;
    }
    if (text_width(line, 10.5) + text_width(" ", 10.5) + text_width(word, 10.5) > width) flush();
    line.append(line.empty() ? "" : " ").append(word);
    word.clear();
  }
  flush();
  return row - y;
}

// Width of a bold title: bold letters are about a tenth wider than in the table.
double title_width(const std::string& title) {
  return text_width(title, 13.5) * 1.12;
}

// Draws "subject · title unit" on one line if it fits, else the subject on a separate line. Returns the
// height.
double draw_title(Markup& out, const Figure& figure, double width) {
  const std::string whole = whole_title(figure, " · ");
  const double unit = figure.unit.empty() ? 0 : text_width(figure.unit, 12) + 8;
  const bool fits = figure.subject.empty() || title_width(whole) + unit <= width;
  const double baseline = fits ? 14 : 31;
  if (!fits) draw_text(out, "title", 0, 14, figure.subject);
  const std::string& title = fits ? whole : figure.title;
  draw_text(out, "title", 0, baseline, title);
  draw_text(out, "unit", title_width(title) + 8, baseline, figure.unit);
  return baseline - 14 + title_height;
}

}  // namespace

std::string series_class(const Series& series) {
  return fmt::format("c-{}{}", series.colour,
                     series.dash > 0 ? fmt::format(" r r{}", (series.dash - 1) % 4) : "");
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

std::string svg_document(const Figure& figure) {
  const Drawing drawing = drawing_of(figure);
  Markup body;
  const double head = draw_title(body, figure, drawing.width);
  body.open("g", {{"class", class_of(drawing)}, {"transform", "translate(0 " + coordinate(head) + ")"}});
  if (figure.missing.empty()) {
    drawing.draw(body);
  } else {
    draw_text(body, "mid", drawing.width / 2, panel_height / 2, figure.missing);
  }
  body.close();
  double height = head + (figure.missing.empty() ? drawing.height : panel_height) + 4;
  height += draw_legend(body, drawing, height);
  height += draw_caption(body, figure.caption, drawing.width, height) + 4;

  const double full_width = drawing.width + 2 * margin;
  const double full_height = height + 2 * margin;
  Markup out;
  out.verbatim("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  out.open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                   {"class", "alone"},
                   {"width", coordinate(full_width)},
                   {"height", coordinate(full_height)},
                   {"viewBox", view_box(full_width, full_height)}});
  out.leaf("title", {}, whole_title(figure, " "));
  out.open("style").verbatim(figure_style_with_colours()).close();
  out.empty("rect",
            {{"class", "paper"}, {"width", coordinate(full_width)}, {"height", coordinate(full_height)}});
  out.open("g", {{"transform", "translate(" + coordinate(margin) + " " + coordinate(margin) + ")"}});
  out.add(body).close().close().line();
  return out.str();
}

}  // namespace trainyard::reports
