// The pictures inside an <svg>: lines with their strip of final values, bars, stacked bars, forest plots.
// Each draws into the rectangle (0, 0) – (width, height) and uses classes for every colour.
#pragma once

#include "reports/draw/scale.h"
#include "reports/format/figure.h"
#include "reports/format/markup.h"

namespace trainyard::reports {

// Where the curves lie, for the crosshair.
struct LineGeometry {
  double first_x = 0;  // pixel of the first epoch
  double step = 0;     // pixels an epoch
  double first_epoch = 1;
};

LineGeometry line_geometry(const Figure& figure);
void draw_lines(Markup& out, const Figure& figure);
void draw_bars(Markup& out, const Figure& figure);
void draw_stacks(Markup& out, const Figure& figure);
void draw_effects(Markup& out, const Figure& figure);
double effects_height(const Figure& figure);
double stacks_height(const Figure& figure);
inline constexpr double stacks_width = 1220;

// Shared strokes.
// "M1 2H5": a straight stroke, for one path of many.
std::string stroke(double x1, double y1, double x2, double y2);
void draw_strokes(Markup& out, const char* style, const std::string& strokes);
void draw_rule(Markup& out, const char* style, double x1, double y1, double x2, double y2);
void draw_text(Markup& out, const char* style, double x, double y, const std::string& text);
bool has_interval(const Point& point);

}  // namespace trainyard::reports
