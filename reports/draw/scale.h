// An axis in numbers: from values to pixels, with ticks at round values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::reports {

struct Scale1D {
  double low = 0;
  double high = 1;
  double pixel_low = 0;  // where `low` is drawn
  double pixel_high = 1;
  bool log = false;
  double operator()(double value) const;  // clamped to the axis where it is no number on it
};

struct Tick {
  double value = 0;
  std::string label;
};

// Round values within [low, high], about `wanted` of them; on a logarithmic axis 1, 2, 5 per decade or fewer,
// and linear ones where the range is too short for that. Labels have as many decimals as tell them apart.
std::vector<Tick> ticks(double low, double high, int wanted, bool log);
std::vector<Tick> integer_ticks(double low, double high,
                                int wanted);  // both ends' first and last epoch included

// Width of a text in DejaVu Sans, from a small shipped table of its advance widths: figures come out the same
// on a machine that has no fonts at all.

// Of UTF-8 `text` at `size`, in the unit of `size`.
double text_width(std::string_view text, double size);

}  // namespace trainyard::reports
