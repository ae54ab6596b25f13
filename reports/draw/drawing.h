// Drawings of each kind of figure: lines with a strip of final values, bars, stacked bars, timelines, forest plots.
// Colours are CSS classes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/draw/scale.h"
#include "reports/format/figure.h"
#include "reports/format/markup.h"

namespace trainyard::reports {

inline constexpr double panel_width = 380;
inline constexpr double panel_height = 198;
inline constexpr double page_width = 1220;

// Position of the epochs in a drawing, for the crosshair.
struct LineGeometry {
  double first_x = 0;  // pixel of the first epoch
  double step = 0;     // pixels per epoch
  double first_epoch = 1;
};

struct LegendEntry {
  std::string label;
  std::string style;  // class of the sample
  bool box = false;   // a box, else a stroke
};

// Size and font of a drawing, in CSS pixels: 96 per inch. The default is a drawing as on the page. In a sized
// drawing all text is inside the picture, and labels do not touch.
struct DrawingStyle {
  double width = 0;
  double height = 0;  // 0, and drawings of rows: as the content needs
  double font = 0;    // of all text; 0: as on the page
  bool sized() const { return font > 0; }
  // Size of text that has the size `usual` on the page.
  double text(double usual) const { return sized() ? font : usual; }
  double width_or(double usual) const { return sized() ? width : usual; }
};

// A drawing in the rectangle (0, 0) – (width, height). The figure must outlive it.
struct Drawing {
  double width = panel_width;
  double height = panel_height;
  bool wide = false;  // as wide as the page, with larger text
  std::vector<LegendEntry> legend = {};
  std::string spoken = {};                     // values for a screen reader: "; ddp 0.91 (0.90 to 0.92)"
  std::optional<LineGeometry> crosshair = {};  // only for curves over epochs
  std::function<void(Markup&)> draw = {};      // not for a figure that is `missing`
};

// One overload per kind of figure.
Drawing drawing_of(const Figure& figure, const Lines& lines, const DrawingStyle& style);
Drawing drawing_of(const Figure& figure, const Bars& bars, const DrawingStyle& style);
Drawing drawing_of(const Figure& figure, const Stacks& stacks, const DrawingStyle& style);
Drawing drawing_of(const Figure& figure, const Spans& spans, const DrawingStyle& style);
Drawing drawing_of(const Figure& figure, const Effects& effects, const DrawingStyle& style);

// Sized drawings of lines leave out the strip of final values if they are narrower than this many
// times the font size: 10.2 cm at 9 pt.
inline constexpr double least_width_with_strip = 32;
inline bool has_room_for_strip(double width, double font) {
  return width >= least_width_with_strip * font;
}

// Height of lines and bars with `rows` of text above them, which are `row_height` high.
double height_of_panel(const DrawingStyle& style, std::size_t rows, double row_height);

// UserError if the height of a sized drawing leaves too little space between its labels.
void require_space(const Figure& figure, const DrawingStyle& style, double space);

// Shared by lines and bars.
std::vector<LegendEntry> legend_of(const std::vector<Series>& series);
std::string spoken(const std::vector<Series>& series);

// Shared strokes. `stroke`: the path of a straight line, "M1 2H5".
std::string stroke(double x1, double y1, double x2, double y2);
void draw_strokes(Markup& out, const char* style, const std::string& strokes);
void draw_rule(Markup& out, const char* style, double x1, double y1, double x2, double y2);
// A rectangle with a text that browsers show at it, if it is not empty.
void draw_rectangle(Markup& out, const std::string& style, double x, double y, double width, double height,
                    const std::string& title = "");
void draw_circle(Markup& out, const char* style, double x, double y, double radius);
void draw_text(Markup& out, const char* style, double x, double y, const std::string& text);
// Lines of text, the first one with its baseline at `y`.
void draw_lines_of_text(Markup& out, const char* style, double x, double y, double line_height,
                        const std::vector<std::string>& lines);

// Labels below a drawing, in several rows if they would touch. A long label has several lines.
struct LabelRows {
  struct Label {
    double middle = 0;
    std::vector<std::string> lines;
  };
  std::size_t rows = 1;  // label i is in row i % rows
  std::vector<Label> labels;
  std::vector<std::size_t> heights;  // per row, in lines
  std::size_t height() const;        // in lines
};

// `labels`: middle and text of each, from left to right. `width`: of the picture.
LabelRows label_rows(const std::vector<std::pair<double, std::string>>& labels, double width, double font);
// `y`: baseline of the first row.
void draw_label_rows(Markup& out, const LabelRows& all, double y, double line_height, double width,
                     double font);

bool has_interval(const Point& point);

// A mean with its interval, at `x`.
void draw_point(Markup& out, const Point& point, const Scale1D& y, double x);
void draw_final(Markup& out, const Series& series, const Scale1D& y, double x);

}  // namespace trainyard::reports
