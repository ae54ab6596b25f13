#include "reports/svg.h"

#include <cmath>

#include "reports/assets.h"
#include "reports/drawing.h"
#include "reports/number_text.h"
#include "reports/text_width.h"

namespace trainyard::reports {

namespace {

constexpr double title_height = 26;
constexpr double legend_line = 18;
constexpr double margin = 14;

void draw(Markup& out, const Figure& figure) {
  switch (figure.kind) {
    case FigureKind::lines:
      draw_lines(out, figure);
      return;
    case FigureKind::bars:
      draw_bars(out, figure);
      return;
    case FigureKind::stacks:
      draw_stacks(out, figure);
      return;
  }
}

double width_of(const Figure& figure) {
  return figure.kind == FigureKind::stacks ? stacks_width : panel_width;
}
double height_of(const Figure& figure) {
  return figure.kind == FigureKind::stacks ? stacks_height(figure) : panel_height;
}

std::string view_box(double width, double height) {
  return "0 0 " + coordinate(width) + " " + coordinate(height);
}

// What a screen reader says instead of the picture.
std::string spoken(const Figure& figure) {
  std::string text = figure.title;
  for (const Series& series : figure.series) {
    if (!series.final) continue;
    text += "; " + series.label + " " + for_table(series.final->mean);
    if (has_interval(*series.final)) {
      text += " (" + for_table(series.final->low) + " to " + for_table(series.final->high) + ")";
    }
  }
  return text + ". The numbers are in the table below.";
}

struct LegendEntry {
  std::string label;
  std::string style;  // class of the sample
  std::string shape;  // class of the stroke, or empty: a box
};

std::vector<LegendEntry> legend_of(const Figure& figure) {
  std::vector<LegendEntry> entries;
  entries.reserve(figure.series.size() + figure.parts.size());
  for (const Series& series : figure.series) entries.push_back({series.label, series_class(series), "l"});
  for (const Part& part : figure.parts) entries.push_back({part.name, "p-" + part.colour, ""});
  return entries;
}

// Entries in rows of the figure's width; returns the height used.
double draw_legend(Markup& out, const Figure& figure, double y) {
  const double width = width_of(figure);
  double x = 0;
  double row = y + 12;
  for (const LegendEntry& entry : legend_of(figure)) {
    const double needed = 24 + text_width(entry.label, 11) + 14;
    if (x > 0 && x + needed > width) {
      x = 0;
      row += legend_line;
    }
    out.open("g", {{"class", entry.style}});
    if (entry.shape.empty()) {
      out.empty("rect",
                {{"x", coordinate(x)}, {"y", coordinate(row - 10)}, {"width", "14"}, {"height", "12"}});
    } else {
      draw_rule(out, entry.shape.c_str(), x, row - 4, x + 20, row - 4);
    }
    out.close();
    draw_text(out, "lg", x + 24, row, entry.label);
    x += needed;
  }
  return row - y + 8;
}

// Words in lines of the figure's width; returns the height used.
double draw_caption(Markup& out, const Figure& figure, double y) {
  const double width = width_of(figure);
  std::string line;
  double row = y;
  const auto flush = [&] {
    if (line.empty()) return;
    row += 14;
    draw_text(out, "cap", 0, row, line);
    line.clear();
  };
  std::string word;
  for (const char character : figure.caption + " ") {
    if (character != ' ') {
      word += character;
      continue;
    }
    if (text_width(line + " " + word, 10.5) > width) flush();
    line += (line.empty() ? "" : " ") + word;
    word.clear();
  }
  flush();
  return row - y;
}

void draw_title(Markup& out, const Figure& figure) {
  const std::string title = (figure.subject.empty() ? "" : figure.subject + " · ") + figure.title;
  draw_text(out, "title", 0, 14, title);
  // Bold letters are about a tenth wider than the table says.
  draw_text(out, "unit", text_width(title, 13.5) * 1.12 + 8, 14, figure.unit);
}

}  // namespace

void draw_rule(Markup& out, const char* style, double x1, double y1, double x2, double y2) {
  out.empty("path", {{"class", style},
                     {"d", "M" + coordinate(x1) + " " + coordinate(y1) + "L" + coordinate(x2) + " " +
                               coordinate(y2)}});
}

void draw_text(Markup& out, const char* style, double x, double y, const std::string& text) {
  if (text.empty()) return;
  out.leaf("text", {{"class", style}, {"x", coordinate(x)}, {"y", coordinate(y)}}, text);
}

bool has_interval(const Point& point) {
  return std::isfinite(point.low) && std::isfinite(point.high);
}

std::string series_class(const Series& series) {
  return "c-" + series.colour + (series.dash > 0 ? " r r" + std::to_string((series.dash - 1) % 4) : "");
}

Markup page_svg(const Figure& figure) {
  Markup out;
  if (!figure.missing.empty()) return out;
  const std::string box = view_box(width_of(figure), height_of(figure));
  if (figure.kind == FigureKind::lines) {
    const LineGeometry geometry = line_geometry(figure);
    out.open("svg", {{"class", "chart"},
                     {"viewBox", box},
                     {"role", "img"},
                     {"tabindex", "0"},
                     {"aria-label", spoken(figure) + " Arrow keys read single epochs."},
                     {"data-x0", coordinate(geometry.first_x)},
                     {"data-dx", plain_number(geometry.step)},
                     {"data-first", plain_number(geometry.first_epoch)}});
  } else {
    out.open("svg", {{"class", figure.kind == FigureKind::stacks ? "chart bd" : "chart"},
                     {"viewBox", box},
                     {"role", "img"},
                     {"aria-label", spoken(figure)}});
  }
  draw(out, figure);
  out.close();
  return out;
}

std::string svg_document(const Figure& figure) {
  Markup body;
  draw_title(body, figure);
  body.open("g", {{"class", figure.kind == FigureKind::stacks ? "chart bd" : "chart"},
                  {"transform", "translate(0 " + coordinate(title_height) + ")"}});
  if (figure.missing.empty()) {
    draw(body, figure);
  } else {
    draw_text(body, "mid", width_of(figure) / 2, panel_height / 2, figure.missing);
  }
  body.close();
  double height = title_height + (figure.missing.empty() ? height_of(figure) : panel_height) + 4;
  height += draw_legend(body, figure, height);
  height += draw_caption(body, figure, height) + 4;

  const double full_width = width_of(figure) + 2 * margin;
  const double full_height = height + 2 * margin;
  Markup out;
  out.verbatim("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  out.open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                   {"class", "alone"},
                   {"width", coordinate(full_width)},
                   {"height", coordinate(full_height)},
                   {"viewBox", view_box(full_width, full_height)}});
  out.leaf("title", {}, figure.subject + " " + figure.title);
  out.open("style").verbatim(figure_style_with_colours()).close();
  out.empty("rect",
            {{"class", "paper"}, {"width", coordinate(full_width)}, {"height", coordinate(full_height)}});
  out.open("g", {{"transform", "translate(" + coordinate(margin) + " " + coordinate(margin) + ")"}});
  out.add(body).close().close().line();
  return out.str();
}

}  // namespace trainyard::reports
