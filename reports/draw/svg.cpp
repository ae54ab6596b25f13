#include "reports/draw/svg.h"

#include <algorithm>
#include <cmath>

#include "reports/draw/assets.h"
#include "reports/draw/drawing.h"
#include "reports/draw/scale.h"
#include "reports/format/number_text.h"

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
    case FigureKind::effects:
      draw_effects(out, figure);
      return;
  }
}

bool is_wide(const Figure& figure) {
  return figure.kind == FigureKind::stacks || figure.kind == FigureKind::effects;
}
double width_of(const Figure& figure) {
  return is_wide(figure) ? stacks_width : panel_width;
}
double height_of(const Figure& figure) {
  if (figure.kind == FigureKind::effects) return effects_height(figure);
  return figure.kind == FigureKind::stacks ? stacks_height(figure) : panel_height;
}
const char* class_of(const Figure& figure) {
  return is_wide(figure) ? "chart bd" : "chart";
}

std::string view_box(double width, double height) {
  return "0 0 " + coordinate(width) + " " + coordinate(height);
}

std::string with_interval(const Point& point) {
  std::string text = for_table(point.mean);
  if (has_interval(point)) text += " (" + for_table(point.low) + " to " + for_table(point.high) + ")";
  return text;
}

// What a screen reader says instead of the picture.
std::string spoken(const Figure& figure) {
  std::string text = figure.title;
  for (const Series& series : figure.series) {
    if (series.final) text += "; " + series.label + " " + with_interval(*series.final);
    if (series.final || series.points.empty()) continue;
    text += "; " + series.label + " ends at " + with_interval(series.points.back());
  }
  for (const Stack& stack : figure.stacks)
    text += "; " + stack.group + " " + stack.label + " " + for_table(stack.total, 3) + " s";
  for (const EffectColumn& column : figure.columns) text += "; " + column.title;
  return text + ". Numbers below.";
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
  for (const EffectRow& row : figure.rows) {
    const bool known =
        std::ranges::any_of(entries, [&](const LegendEntry& entry) { return entry.label == row.label; });
    if (!known) entries.push_back({row.label, "c-" + row.colour, "l"});
  }
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
    if (text_width(line, 10.5) + text_width(" ", 10.5) + text_width(word, 10.5) > width) flush();
    line.append(line.empty() ? "" : " ").append(word);
    word.clear();
  }
  flush();
  return row - y;
}

// Bold letters are about a tenth wider than the table says.
double title_width(const std::string& title) {
  return text_width(title, 13.5) * 1.12;
}

// "subject · title unit" on one line where it fits, else the subject on a line of its own; returns the height
// used.
double draw_title(Markup& out, const Figure& figure) {
  const std::string whole = whole_title(figure, " · ");
  const double unit = figure.unit.empty() ? 0 : text_width(figure.unit, 12) + 8;
  const bool fits = figure.subject.empty() || title_width(whole) + unit <= width_of(figure);
  const double baseline = fits ? 14 : 31;
  if (!fits) draw_text(out, "title", 0, 14, figure.subject);
  const std::string& title = fits ? whole : figure.title;
  draw_text(out, "title", 0, baseline, title);
  draw_text(out, "unit", title_width(title) + 8, baseline, figure.unit);
  return baseline - 14 + title_height;
}

}  // namespace

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
  if (figure.kind == FigureKind::lines && figure.x.title == "epoch") {
    const LineGeometry geometry = line_geometry(figure);
    out.open("svg", {{"class", "chart"},
                     {"viewBox", box},
                     {"role", "img"},
                     {"tabindex", "0"},
                     {"aria-label", spoken(figure) + " Arrow keys read epochs."},
                     {"data-x0", coordinate(geometry.first_x)},
                     {"data-dx", plain_number(geometry.step)},
                     {"data-first", plain_number(geometry.first_epoch)}});
  } else {
    out.open(
        "svg",
        {{"class", class_of(figure)}, {"viewBox", box}, {"role", "img"}, {"aria-label", spoken(figure)}});
  }
  draw(out, figure);
  out.close();
  return out;
}

std::string svg_document(const Figure& figure) {
  Markup body;
  const double head = draw_title(body, figure);
  body.open("g", {{"class", class_of(figure)}, {"transform", "translate(0 " + coordinate(head) + ")"}});
  if (figure.missing.empty()) {
    draw(body, figure);
  } else {
    draw_text(body, "mid", width_of(figure) / 2, panel_height / 2, figure.missing);
  }
  body.close();
  double height = head + (figure.missing.empty() ? height_of(figure) : panel_height) + 4;
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
  out.leaf("title", {}, whole_title(figure, " "));
  out.open("style").verbatim(figure_style_with_colours()).close();
  out.empty("rect",
            {{"class", "paper"}, {"width", coordinate(full_width)}, {"height", coordinate(full_height)}});
  out.open("g", {{"transform", "translate(" + coordinate(margin) + " " + coordinate(margin) + ")"}});
  out.add(body).close().close().line();
  return out.str();
}

}  // namespace trainyard::reports
