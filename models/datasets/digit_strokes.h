// The digits 0 – 9 as pen strokes in the unit square, for `synthetic_digits.h`. x points right, y points
// down.
#pragma once

#include <span>
#include <vector>

namespace trainyard::models {

struct Point {
  float x = 0;
  float y = 0;
};

struct Stroke {
  bool smooth = false;  // a curve through the points; otherwise straight lines
  std::vector<Point> points;
};

using Glyph = std::vector<Stroke>;

// The ways to write `digit`. Each digit has at least one.
std::span<const Glyph> glyphs_of(int digit);

// The points of `stroke` to be joined by straight lines. A smooth stroke becomes a Catmull-Rom spline, which
// is closed if its last point equals its first.
std::vector<Point> flattened(const Stroke& stroke);

}  // namespace trainyard::models
