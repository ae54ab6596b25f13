// Axes: conversion of values to pixels, ticks at round values, and widths of texts.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::reports {

struct Scale1D {
  double low = 0;
  double high = 1;
  double pixel_low = 0;  // pixel of `low`
  double pixel_high = 1;
  bool log = false;
  double operator()(double value) const;  // values beyond the ends are clamped
};

struct Tick {
  double value = 0;
  std::string label;
};

// About `wanted` round values within [low, high]. On a logarithmic axis up to six per decade, or linear ticks
// if the range is too short. Labels have just enough decimals to differ.
std::vector<Tick> ticks(double low, double high, int wanted, bool log);
std::vector<Tick> integer_ticks(double low, double high, int wanted);  // `low` and `high` are included

// The ticks that `make` returns for the largest number up to `wanted` with labels that do not touch. If there is
// none, some ticks are left out.
using MakeTicks = std::function<std::vector<Tick>(int wanted)>;
using Touching = std::function<bool(const Tick& before, const Tick& after)>;
std::vector<Tick> spaced_ticks(int wanted, const MakeTicks& make, const Touching& touching);

// Labels with the font size `size` on a horizontal axis in a picture from 0 to `width`, and on a vertical axis.
Touching touching_beside(const Scale1D& scale, double size, double width);
Touching touching_above(const Scale1D& scale, double size);

// Middle of a text that is as near as possible to `middle` and inside a picture from 0 to `width`.
double middle_inside(double middle, const std::string& text, double size, double width);

enum class Weight { normal, bold };

// Width of UTF-8 `text` in DejaVu Sans at `size`, in the unit of `size`. The advance widths are built in, so
// figures do not depend on installed fonts.
double text_width(std::string_view text, double size, Weight weight = Weight::normal);

// Lines of at most `width`. Words are broken only if they are wider than that.
std::vector<std::string> text_lines(const std::string& text, double width, double size,
                                    Weight weight = Weight::normal);
double widest(const std::vector<std::string>& lines, double size, Weight weight = Weight::normal);
double widest(const std::vector<Tick>& all, double size);  // of their labels

}  // namespace trainyard::reports
