#include "reports/number_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace trainyard::reports {

namespace {

std::string to_text(double value, std::chars_format format, int precision) {
  std::array<char, 400> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision);
  return {buffer.data(), result.ptr};
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string with_minus_sign(const std::string& text) {
  return !text.empty() && text.front() == '-' ? minus_sign + text.substr(1) : text;
}

bool is_zero(const std::string& text) {
  return text.find_first_not_of("-0.") == std::string::npos;
}

// Decimals that show `width` to two significant digits, within limits.
int decimals_for(double width, int least, int most) {
  if (!(width > 0) || !std::isfinite(width)) return least;
  return std::clamp(1 - static_cast<int>(std::floor(std::log10(width))), least, most);
}

// Decimals of a change: the interval's half width decides where there is one, the unit limits.
int decimals_of(const Verdict& verdict) {
  const Interval interval = verdict.estimate ? change_of(verdict, 0.95).interval : Interval{};
  const double half = (interval.high - interval.low) / 2;
  switch (verdict.scale) {
    case Scale::log_ratio:
      return decimals_for(half * 10, 1, 2);
    case Scale::points:
    case Scale::decibels:
      return decimals_for(half, 2, 3);
    case Scale::absolute:
      return decimals_for(std::max(half, verdict.margin / 5), 2, 6);
  }
  return 2;
}

// Accuracies are percentages, BLEU is points of a scale to 100.
std::string points_of(const Verdict& verdict) {
  return find_metric(verdict.metric).kind == MetricKind::bleu ? " points" : " pp";
}

}  // namespace

std::string plain_number(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return "0";
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (exponent < -5 || exponent > 15) return to_text(value, std::chars_format::general, digits);
  return without_trailing_zeros(to_text(value, std::chars_format::fixed, std::max(0, digits - 1 - exponent)));
}

std::string coordinate(double value) {
  return without_trailing_zeros(to_text(value, std::chars_format::fixed, 1));
}

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return std::isnan(value) ? "–" : value > 0 ? "∞" : std::string(minus_sign) + "∞";
  const std::string text = to_text(value, std::chars_format::fixed, decimals);
  return is_zero(text) && text.front() == '-' ? text.substr(1) : with_minus_sign(text);
}

std::string signed_fixed(double value, int decimals) {
  const std::string text = fixed(value, decimals);
  return value > 0 && !is_zero(text) ? "+" + text : text;
}

std::string for_table(double value, int digits) {
  if (!std::isfinite(value)) return fixed(value, 0);
  if (value == 0) return "0";
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (exponent < -6) return with_minus_sign(to_text(value, std::chars_format::scientific, 1));
  return fixed(value, std::max(0, digits - 1 - exponent));
}

std::string effect_text(const Verdict& verdict) {
  if (!verdict.estimate && !verdict.difference) return "–";
  const double change =
      verdict.estimate ? change_of(verdict, 0.95).value : as_change(verdict.scale, *verdict.difference);
  const std::string number = signed_fixed(change, decimals_of(verdict));
  switch (verdict.scale) {
    case Scale::log_ratio:
      return number + " %";
    case Scale::points:
      return number + points_of(verdict);
    case Scale::decibels:
      return number + " dB";
    case Scale::absolute:
      return number + " absolute";
  }
  return number;
}

std::string interval_text(const Verdict& verdict, double level) {
  if (!verdict.estimate) return "–";
  const Interval interval = change_of(verdict, level).interval;
  const int decimals = decimals_of(verdict);
  return "[" + signed_fixed(interval.low, decimals) + ", " + signed_fixed(interval.high, decimals) + "]";
}

std::string margin_text(const Verdict& verdict) {
  switch (verdict.scale) {
    case Scale::log_ratio:
      return "a factor of " + plain_number(std::exp(verdict.margin), 5);
    case Scale::points:
      return "±" + plain_number(verdict.margin, 4) + points_of(verdict);
    case Scale::decibels:
      return "±" + plain_number(verdict.margin, 2) + " dB";
    case Scale::absolute:
      return "±" + plain_number(verdict.margin, 4);
  }
  return "";
}

std::string speed_text(const Verdict& verdict) {
  if (verdict.scale != Scale::log_ratio || !verdict.estimate) return "";
  return fixed(std::exp(verdict.estimate->mean), 2) + " × as fast";
}

std::string p_with_hypothesis(std::optional<double> p, const std::string& hypothesis) {
  if (!p) return p_text(p);
  return p_text(p) + " (" + hypothesis.substr(0, hypothesis.find(' ')) + ")";
}

std::string p_text(std::optional<double> p) {
  if (!p) return "–";
  return *p < 0.0001 ? "< 0.0001" : fixed(*p, *p < 0.1 ? 4 : 3);
}

}  // namespace trainyard::reports
