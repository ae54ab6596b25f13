// The digits 0 – 9 as pen strokes in the unit square (x to the right, y down): what `synthetic_digits` bends
// and draws. Some digits are written in more than one way.
#pragma once

#include <span>
#include <vector>

namespace trainyard::models {

struct Point {
  float x = 0;
  float y = 0;
};

struct Stroke {
  bool smooth = false;  // a curve through the points; otherwise straight lines between them
  std::vector<Point> points;
};

using Glyph = std::vector<Stroke>;

// The ways to write `digit`, at least one.
std::span<const Glyph> glyphs_of(int digit);

// `stroke` as points to be joined by straight lines: a smooth one becomes a Catmull-Rom spline, closed where
// its last point is its first.
std::vector<Point> flattened(const Stroke& stroke);

}  // namespace trainyard::models
