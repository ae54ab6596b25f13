// Numbers as text: short and exact enough for people, at most six significant digits in pictures, the same on
// every machine (no locale).
#pragma once

#include <optional>
#include <string>

#include "reports/verdict.h"

namespace trainyard::reports {

inline constexpr const char* minus_sign = "\u2212";

// At most `digits` significant digits, no exponent for magnitudes 1e-5 … 1e15, no trailing zeros; "-" as a
// hyphen.
std::string plain_number(double value, int digits = 6);

// For coordinates in SVG: a tenth of a pixel.
std::string coordinate(double value);

// Fixed decimals with a proper minus sign; "–" for NaN.
std::string fixed(double value, int decimals);
std::string signed_fixed(double value, int decimals);  // "+0.5", "−0.3", "0.0"

// Four significant digits for tables: "0.2341", "41.09", "1371"; "–" for NaN.
std::string for_table(double value, int digits = 4);

// "−43.2 %", "+0.10 pp", "+0.0012 absolute"; "–" without pairs.
std::string effect_text(const Verdict& verdict);
// "[−43.6, −42.8]": the interval of this level, without its unit; "–" where there is none.
std::string interval_text(const Verdict& verdict, double level = 0.95);
// "a factor of 1.05", "±0.5 pp", "±0.005".
std::string margin_text(const Verdict& verdict);
// "1.81 × as fast", for times; empty otherwise.
std::string speed_text(const Verdict& verdict);
std::string p_with_hypothesis(std::optional<double> p, const std::string& hypothesis);  // "0.012 (inside)"
std::string p_text(std::optional<double> p);  // "0.012", "< 0.0001", "–" where nothing was tested

}  // namespace trainyard::reports
