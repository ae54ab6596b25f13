// Axes: conversion of values to pixels, ticks at round values, and widths of texts.
#pragma once

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

// Width of UTF-8 `text` in DejaVu Sans at `size`, in the unit of `size`. The advance widths are built in, so
// figures do not depend on installed fonts.
double text_width(std::string_view text, double size);

}  // namespace trainyard::reports
