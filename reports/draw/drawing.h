// How each kind of figure is drawn: lines with their strip of final values, bars, stacked bars, forest plots.
// Classes stand for every colour.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/draw/scale.h"
#include "reports/format/figure.h"
#include "reports/format/markup.h"

namespace trainyard::reports {

inline constexpr double panel_width = 380;
inline constexpr double panel_height = 198;
inline constexpr double page_width = 1220;

// Where the curves lie, for the crosshair.
struct LineGeometry {
  double first_x = 0;  // pixel of the first epoch
  double step = 0;     // pixels an epoch
  double first_epoch = 1;
};

struct LegendEntry {
  std::string label;
  std::string style;  // class of the sample
  bool box = false;   // a box, else a stroke
};

// What `draw` adds lies in the rectangle (0, 0) – (width, height). It refers to the figure.
struct Drawing {
  double width = panel_width;
  double height = panel_height;
  std::vector<LegendEntry> legend;
  std::string spoken;                     // numbers, for a screen reader: "; ddp 0.91 (0.90 to 0.92)"
  std::optional<LineGeometry> crosshair;  // of curves over epochs
  std::function<void(Markup&)> draw;      // not for a figure that is `missing`
};

// One overload per kind of figure.
Drawing drawing_of(const Figure& figure, const Lines& lines);
Drawing drawing_of(const Figure& figure, const Bars& bars);
Drawing drawing_of(const Figure& figure, const Stacks& stacks);
Drawing drawing_of(const Figure& figure, const Effects& effects);

// Shared by lines and bars.
std::vector<LegendEntry> legend_of(const std::vector<Series>& series);
std::string spoken(const std::vector<Series>& series);

// Shared strokes.
// "M1 2H5": a straight stroke, for one path of many.
std::string stroke(double x1, double y1, double x2, double y2);
void draw_strokes(Markup& out, const char* style, const std::string& strokes);
void draw_rule(Markup& out, const char* style, double x1, double y1, double x2, double y2);
void draw_text(Markup& out, const char* style, double x, double y, const std::string& text);
bool has_interval(const Point& point);

}  // namespace trainyard::reports
