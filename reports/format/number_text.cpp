#include "reports/format/number_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

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

}  // namespace

std::string plain_number(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return "0";
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (exponent < -5 || exponent > 15) return to_text(value, std::chars_format::general, digits);
  return without_trailing_zeros(to_text(value, std::chars_format::fixed, std::max(0, digits - 1 - exponent)));
}

double rounded(double value, int digits) {
  const std::string text = plain_number(value, digits);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
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

std::string decimals(double value, int digits) {
  return std::isnan(value) ? "" : fmt::format("{:.{}f}", value, digits);
}

std::string for_table(double value, int digits) {
  if (!std::isfinite(value)) return fixed(value, 0);
  if (value == 0) return "0";
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (exponent < -6) return with_minus_sign(to_text(value, std::chars_format::scientific, 1));
  return fixed(value, std::max(0, digits - 1 - exponent));
}

MeanText with_half(double mean, double half) {
  constexpr int most_decimals = 6;  // smaller numbers have an exponent
  if (std::isnan(half)) return {for_table(mean), ""};
  if (half == 0) return {for_table(mean), "0"};
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(rounded(half, 2)))));
  const int decimals = std::max(0, 1 - exponent);
  if (decimals > most_decimals) return {for_table(mean), for_table(half, 2)};
  return {fixed(mean, decimals), fixed(half, decimals)};
}

}  // namespace trainyard::reports
