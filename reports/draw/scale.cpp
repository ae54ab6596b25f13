#include "reports/draw/scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

// The smallest of 1, 2, 5 × 10^k that is not below `least`.
double round_step(double least) {
  const double decade = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= least * (1 - 1e-9)) return factor * decade;
  }
  return 10 * decade;
}

int decimals_of_step(double step) {
  return std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
}

std::vector<Tick> linear_ticks(double low, double high, int wanted) {
  const double step = round_step(0.75 * (high - low) / wanted);
  const int decimals = decimals_of_step(step);
  std::vector<Tick> result;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
    result.push_back({i * step, fixed(i * step, decimals)});
  }
  return result;
}

std::vector<Tick> decade_ticks(double low, double high, const std::vector<double>& factors) {
  std::vector<Tick> result;
  for (int exponent = static_cast<int>(std::floor(std::log10(low))); std::pow(10.0, exponent) <= high;
       ++exponent) {
    for (const double factor : factors) {
      const double value = factor * std::pow(10.0, exponent);
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9))
        result.push_back({value, plain_number(value, 6)});
    }
  }
  return result;
}

std::vector<Tick> log_ticks(double low, double high, int wanted) {
  const std::array<std::vector<double>, 4> choices{{{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 5, 7}}};
  for (const std::vector<double>& factors : choices) {
    std::vector<Tick> result = decade_ticks(low, high, factors);
    if (static_cast<int>(result.size()) >= std::min(wanted, 3)) return result;
  }
  std::vector<Tick> result = linear_ticks(low, high, wanted);
  std::erase_if(result, [&](const Tick& tick) { return tick.value < low || tick.value <= 0; });
  return result;
}

}  // namespace

double Scale1D::operator()(double value) const {
  const double bounded = std::clamp(value, low, high);
  const double share = log ? std::log(bounded / low) / std::log(high / low) : (bounded - low) / (high - low);
  return pixel_low + share * (pixel_high - pixel_low);
}

std::vector<Tick> ticks(double low, double high, int wanted, bool log) {
  return log ? log_ticks(low, high, wanted) : linear_ticks(low, high, wanted);
}

std::vector<Tick> integer_ticks(double low, double high, int wanted) {
  const double step = std::max(1.0, round_step((high - low) / wanted));
  std::vector<Tick> result{{low, plain_number(low)}};
  for (double value = step * std::floor(low / step + 1); value < high; value += step) {
    const bool crowded = value - low <= 0.5 * step || high - value < 0.08 * (high - low);
    if (!crowded) result.push_back({value, plain_number(value)});
  }
  if (high > low) result.push_back({high, plain_number(high)});
  return result;
}

namespace {

constexpr double units_per_em = 2048;
constexpr double usual_advance = 1300;  // for characters that are not in the tables

// DejaVu Sans Book 2.37, advance widths of U+0020 … U+007E.
constexpr std::array<std::uint16_t, 95> ascii_advance{
    651,  821,  942,  1716, 1303, 1946, 1597, 563,  799,  799,  1024, 1716, 651,  739,  651,  690,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690,  690,  1716, 1716, 1716, 1087,
    2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604,  604,  1343, 1141, 1767, 1532, 1612,
    1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799,  690,  799,  1716, 1024,
    1024, 1255, 1300, 1126, 1300, 1260, 721,  1300, 1298, 569,  569,  1186, 569,  1995, 1298, 1253,
    1300, 1300, 842,  1067, 803,  1298, 1212, 1675, 1212, 1212, 1075, 1303, 690,  1303, 1716,
};

struct Advance {
  std::uint32_t character;
  double width;
};
// Minus, multiplication sign, en dash, ellipsis, micro, plus-minus, middle dot.
constexpr std::array<Advance, 7> other_advance{
    {{0x2212, 1716}, {0xd7, 1716}, {0x2013, 1024}, {0x2026, 2048}, {0xb5, 1303}, {0xb1, 1716}, {0xb7, 651}}};

double advance(std::uint32_t character) {
  if (character >= 0x20 && character <= 0x7e) return ascii_advance[character - 0x20];
  for (const Advance& other : other_advance) {
    if (other.character == character) return other.width;
  }
  return usual_advance;
}

}  // namespace

double text_width(std::string_view text, double size) {
  double width = 0;
  std::uint32_t character = 0;
  int pending = 0;  // continuation bytes of a UTF-8 sequence still to come
  for (const char raw : text) {
    const auto byte = static_cast<unsigned char>(raw);
    if ((byte & 0xc0U) == 0x80U) {
      character = (character << 6U) | (byte & 0x3fU);
      if (--pending == 0) width += advance(character);
      continue;
    }
    pending = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
    character = pending == 3   ? byte & 0x07U
                : pending == 2 ? byte & 0x0fU
                : pending == 1 ? byte & 0x1fU
                               : byte;
    if (pending == 0) width += advance(character);
  }
  return width / units_per_em * size;
}

}  // namespace trainyard::reports
