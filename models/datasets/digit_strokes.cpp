#include "models/datasets/digit_strokes.h"

#include <array>
#include <cstddef>

namespace trainyard::models {

namespace {

constexpr int pieces = 4;  // straight lines per segment of a smooth stroke

std::array<std::vector<Glyph>, 10> all_glyphs() {
  constexpr bool line = false;
  constexpr bool curve = true;
  const Stroke zero{curve,
                    {{.5F, 0},
                     {.85F, .15F},
                     {1, .5F},
                     {.85F, .85F},
                     {.5F, 1},
                     {.15F, .85F},
                     {0, .5F},
                     {.15F, .15F},
                     {.5F, 0}}};
  const Stroke one_flag{line, {{.25F, .25F}, {.55F, 0}, {.55F, 1}}};
  const Stroke one_foot{line, {{.2F, 1}, {.9F, 1}}};
  const Stroke two_arc{
      curve,
      {{.05F, .25F}, {.2F, .06F}, {.5F, 0}, {.85F, .1F}, {.93F, .3F}, {.78F, .54F}, {.4F, .78F}, {.03F, 1}}};
  const Stroke two_foot{line, {{.03F, 1}, {1, 1}}};
  const Stroke three_top{curve,
                         {{.08F, .1F}, {.45F, 0}, {.85F, .1F}, {.88F, .32F}, {.65F, .46F}, {.38F, .48F}}};
  const Stroke three_bottom{
      curve, {{.38F, .48F}, {.75F, .52F}, {.97F, .72F}, {.85F, .93F}, {.45F, 1}, {.03F, .88F}}};
  const Stroke four_closed{line, {{.7F, 1}, {.7F, 0}, {0, .68F}, {1, .68F}}};
  const Stroke four_left{line, {{.15F, 0}, {.05F, .55F}, {.98F, .55F}}};
  const Stroke four_right{line, {{.8F, .05F}, {.72F, 1}}};
  const Stroke five_top{line, {{.92F, 0}, {.2F, 0}, {.12F, .45F}}};
  const Stroke five_bottom{
      curve, {{.12F, .45F}, {.5F, .38F}, {.9F, .52F}, {.97F, .72F}, {.8F, .93F}, {.45F, 1}, {.03F, .9F}}};
  const Stroke six{curve,
                   {{.85F, .03F},
                    {.45F, .15F},
                    {.12F, .45F},
                    {.03F, .72F},
                    {.2F, .95F},
                    {.5F, 1},
                    {.85F, .93F},
                    {.97F, .72F},
                    {.82F, .52F},
                    {.5F, .47F},
                    {.2F, .56F},
                    {.05F, .75F}}};
  const Stroke seven{line, {{.02F, 0}, {1, 0}, {.35F, 1}}};
  const Stroke seven_bar{line, {{.3F, .5F}, {.9F, .5F}}};
  const Stroke eight{curve,
                     {{.5F, .47F},
                      {.15F, .35F},
                      {.12F, .15F},
                      {.5F, 0},
                      {.88F, .15F},
                      {.85F, .35F},
                      {.5F, .47F},
                      {.12F, .62F},
                      {.02F, .8F},
                      {.5F, 1},
                      {.98F, .8F},
                      {.88F, .62F},
                      {.5F, .47F}}};
  const Stroke nine_curved{curve,
                           {{.15F, .97F},
                            {.55F, .85F},
                            {.88F, .55F},
                            {.97F, .28F},
                            {.8F, .05F},
                            {.5F, 0},
                            {.15F, .07F},
                            {.03F, .28F},
                            {.18F, .48F},
                            {.5F, .53F},
                            {.8F, .44F},
                            {.95F, .25F}}};
  const Stroke nine_loop{curve,
                         {{.93F, .28F},
                          {.8F, .07F},
                          {.5F, 0},
                          {.15F, .1F},
                          {.05F, .3F},
                          {.2F, .5F},
                          {.5F, .54F},
                          {.8F, .48F},
                          {.93F, .28F}}};
  const Stroke nine_stem{line, {{.93F, .28F}, {.85F, 1}}};
  return {{{{zero}},
           {{{line, {{.5F, 0}, {.5F, 1}}}}, {one_flag}, {one_flag, one_foot}},
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
