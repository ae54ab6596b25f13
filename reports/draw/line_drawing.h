// Layout of a figure of lines: scales and ticks of the curves and of the strip of final values at the right,
// and labels of guides in rows above the curves.
#pragma once

#include <string>
#include <vector>

#include "reports/draw/drawing.h"
#include "reports/draw/scale.h"
#include "reports/format/figure.h"

namespace trainyard::reports {

using Polyline = std::vector<std::pair<double, double>>;  // pixels

struct GuideLayout {
  const Guide* guide = nullptr;
  Polyline line;                  // the part inside the axes; may be empty
  std::vector<std::string> rows;  // lines of the label
};

struct LineLayout {
  double width = panel_width;
  double height = panel_height;
  double scale = 1;  // of distances around axis labels: their font size over that on the page
  double axis_font = 0;
  double guide_font = 0;
  Scale1D x;
  Scale1D y;
  Scale1D strip;
  std::vector<Tick> x_ticks;
  std::vector<Tick> y_ticks;
  std::vector<Tick> strip_ticks;
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
  double strip_left = 0;
  double strip_right = 0;
  bool has_strip = false;
  std::vector<GuideLayout> guides;
};

// `unit`: unit of the figure, for labels with values.
LineLayout line_layout(const Lines& lines, const std::string& unit, const DrawingStyle& style = {});

}  // namespace trainyard::reports
