// Numbers as text for people, independent of the locale.
#pragma once

#include <string>

namespace trainyard::reports {

inline constexpr const char* minus_sign = "\u2212";

// At most `digits` significant digits, without trailing zeros, with a hyphen as minus sign. No exponent for
// magnitudes 1e-5 … 1e15.
std::string plain_number(double value, int digits = 6);

// The double nearest to `plain_number`.
double rounded(double value, int digits = 6);

// A coordinate in SVG, in tenths of a pixel.
std::string coordinate(double value);

// Fixed number of decimals, with U+2212 as minus sign; "–" for NaN.
std::string fixed(double value, int decimals);
std::string signed_fixed(double value, int decimals);  // "+0.5", "−0.3", "0.0"

// `digits` decimals, with a hyphen as minus sign; empty for NaN.
std::string decimals(double value, int digits);

// Four significant digits for tables: "0.2341", "41.09", "1371"; "–" for NaN.
std::string for_table(double value, int digits = 4);

// A mean, and half of its interval with two significant digits.
struct MeanText {
  std::string mean;
  std::string half;  // empty if there is no interval
};
MeanText with_half(double mean, double half);

}  // namespace trainyard::reports
