#include "models/datasets/digit_strokes.h"

#include <array>
#include <cstddef>
#include <sstream>

namespace trainyard::models {

namespace {

constexpr int pieces = 4;  // straight lines per segment of a smooth stroke

// The points as SVG has them: "x,y x,y …".
std::vector<Point> points_in(const char* text) {
  std::istringstream in(text);
  std::vector<Point> points;
  char comma = 0;
  for (Point point; in >> point.x >> comma >> point.y;) points.push_back(point);
  return points;
}

Stroke line(const char* points) {
  return {false, points_in(points)};
}

Stroke curve(const char* points) {
  return {true, points_in(points)};
}

std::array<std::vector<Glyph>, 10> all_glyphs() {
  const Stroke zero = curve(".5,0 .85,.15 1,.5 .85,.85 .5,1 .15,.85 0,.5 .15,.15 .5,0");
  const Stroke one_flag = line(".25,.25 .55,0 .55,1");
  const Stroke one_foot = line(".2,1 .9,1");
  const Stroke two_arc = curve(".05,.25 .2,.06 .5,0 .85,.1 .93,.3 .78,.54 .4,.78 .03,1");
  const Stroke two_foot = line(".03,1 1,1");
  const Stroke three_top = curve(".08,.1 .45,0 .85,.1 .88,.32 .65,.46 .38,.48");
  const Stroke three_bottom = curve(".38,.48 .75,.52 .97,.72 .85,.93 .45,1 .03,.88");
  const Stroke four_closed = line(".7,1 .7,0 0,.68 1,.68");
  const Stroke four_left = line(".15,0 .05,.55 .98,.55");
  const Stroke four_right = line(".8,.05 .72,1");
  const Stroke five_top = line(".92,0 .2,0 .12,.45");
  const Stroke five_bottom = curve(".12,.45 .5,.38 .9,.52 .97,.72 .8,.93 .45,1 .03,.9");
  const Stroke six =
      curve(".85,.03 .45,.15 .12,.45 .03,.72 .2,.95 .5,1 .85,.93 .97,.72 .82,.52 .5,.47 .2,.56 .05,.75");
  const Stroke seven = line(".02,0 1,0 .35,1");
  const Stroke seven_bar = line(".3,.5 .9,.5");
  const Stroke eight =
      curve(".5,.47 .15,.35 .12,.15 .5,0 .88,.15 .85,.35 .5,.47 .12,.62 .02,.8 .5,1 .98,.8 .88,.62 .5,.47");
  const Stroke nine_curved =
      curve(".15,.97 .55,.85 .88,.55 .97,.28 .8,.05 .5,0 .15,.07 .03,.28 .18,.48 .5,.53 .8,.44 .95,.25");
  const Stroke nine_loop = curve(".93,.28 .8,.07 .5,0 .15,.1 .05,.3 .2,.5 .5,.54 .8,.48 .93,.28");
  const Stroke nine_stem = line(".93,.28 .85,1");
  return {{{{zero}},
           {{line(".5,0 .5,1")}, {one_flag}, {one_flag, one_foot}},
           {{two_arc, two_foot}},
           {{three_top, three_bottom}},
           {{four_closed}, {four_left, four_right}},
           {{five_top, five_bottom}},
           {{six}},
           {{seven}, {seven, seven_bar}},
           {{eight}},
           {{nine_curved}, {nine_loop, nine_stem}}}};
}

Point on_spline(const Point& before, const Point& from, const Point& to, const Point& after, float t) {
  const auto blend = [t](float p, float a, float b, float n) {
    return a + 0.5F * t * (b - p + t * (2 * p - 5 * a + 4 * b - n + t * (3 * (a - b) + n - p)));
  };
  return {blend(before.x, from.x, to.x, after.x), blend(before.y, from.y, to.y, after.y)};
}

}  // namespace

std::span<const Glyph> glyphs_of(int digit) {
  static const std::array<std::vector<Glyph>, 10> glyphs = all_glyphs();
  return glyphs.at(static_cast<std::size_t>(digit));
}

std::vector<Point> flattened(const Stroke& stroke) {
  const std::vector<Point>& points = stroke.points;
  if (!stroke.smooth || points.size() < 3) return points;
  const std::size_t last = points.size() - 1;
  const bool closed = points[0].x == points[last].x && points[0].y == points[last].y;
  std::vector<Point> result{points[0]};
  for (std::size_t i = 0; i < last; ++i) {
    const Point& before = i > 0 ? points[i - 1] : points[closed ? last - 1 : 0];
    const Point& after = i + 1 < last ? points[i + 2] : points[closed ? 1 : last];
    for (int piece = 1; piece <= pieces; ++piece) {
      result.push_back(
          on_spline(before, points[i], points[i + 1], after, static_cast<float>(piece) / pieces));
    }
  }
  return result;
}

}  // namespace trainyard::models
