// Numbers as text: short and exact enough for people, at most six significant digits in pictures, the same on
// every machine (no locale).
#pragma once

#include <string>

namespace trainyard::reports {

inline constexpr const char* minus_sign = "\u2212";

// At most `digits` significant digits, no exponent for magnitudes 1e-5 … 1e15, no trailing zeros; "-" as a
// hyphen.
std::string plain_number(double value, int digits = 6);

// The double nearest to `plain_number`.
double rounded(double value, int digits = 6);

// For coordinates in SVG: a tenth of a pixel.
std::string coordinate(double value);

// Fixed decimals with a proper minus sign; "–" for NaN.
std::string fixed(double value, int decimals);
std::string signed_fixed(double value, int decimals);  // "+0.5", "−0.3", "0.0"

// `digits` after the point, with a hyphen; empty for NaN.
std::string decimals(double value, int digits);

// Four significant digits for tables: "0.2341", "41.09", "1371"; "–" for NaN.
std::string for_table(double value, int digits = 4);

}  // namespace trainyard::reports
