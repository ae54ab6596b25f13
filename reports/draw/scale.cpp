#include "reports/draw/scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/text.h"
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
// DejaVu Sans Bold 2.37.
constexpr std::array<std::uint16_t, 95> bold_ascii_advance{
    713,  934,  1067, 1716, 1425, 2052, 1786, 627,  936,  936,  1071, 1716, 778,  850,  778,  748,
    1425, 1425, 1425, 1425, 1425, 1425, 1425, 1425, 1425, 1425, 819,  819,  1716, 1716, 1716, 1188,
    2048, 1585, 1561, 1503, 1700, 1399, 1399, 1681, 1714, 762,  762,  1587, 1305, 2038, 1714, 1741,
    1501, 1741, 1577, 1475, 1397, 1663, 1585, 2259, 1579, 1483, 1485, 936,  748,  936,  1716, 1024,
    1024, 1382, 1466, 1214, 1466, 1389, 891,  1466, 1458, 702,  702,  1362, 702,  2134, 1458, 1407,
    1466, 1466, 1010, 1219, 979,  1458, 1335, 1892, 1321, 1335, 1192, 1458, 748,  1458, 1716,
};

// Minus, multiplication sign, en dash, ellipsis, micro, plus-minus, middle dot.
constexpr std::array<Advance, 7> other_advance{
    {{0x2212, 1716}, {0xd7, 1716}, {0x2013, 1024}, {0x2026, 2048}, {0xb5, 1303}, {0xb1, 1716}, {0xb7, 651}}};

double advance(std::uint32_t character, Weight weight) {
  if (character >= 0x20 && character <= 0x7e)
    return (weight == Weight::bold ? bold_ascii_advance : ascii_advance)[character - 0x20];
  for (const Advance& other : other_advance) {
    if (other.character == character) return other.width;
  }
  return usual_advance;
}

// Length of the beginning of `word` that fits into `width`: at least one character, and if possible up to a
// sign that separates parts of a name.
std::size_t fitting(const std::string& word, double width, double size, Weight weight) {
  std::size_t fits = 0;
  std::size_t after_sign = 0;
  for (std::size_t end = 1; end <= word.size(); ++end) {
    const bool inside = end < word.size() && (static_cast<unsigned char>(word[end]) & 0xc0U) == 0x80U;
    if (inside) continue;
    if (fits > 0 && text_width(std::string_view(word).substr(0, end), size, weight) > width) break;
    fits = end;
    if (std::string_view("-_/=,.:").find(word[end - 1]) != std::string_view::npos) after_sign = end;
  }
  return fits < word.size() && after_sign > 0 ? after_sign : fits;
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

double text_width(std::string_view text, double size, Weight weight) {
  double width = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    width += advance(character.code, weight);
    text.remove_prefix(character.bytes);
  }
  return width / units_per_em * size;
}

std::vector<std::string> text_lines(const std::string& text, double width, double size, Weight weight) {
  std::vector<std::string> lines;
  std::string line;
  const auto flush = [&] {
    if (!line.empty()) lines.push_back(line);
    line.clear();
  };
  width += 1e-6;  // a width may be that of the text itself, after rounding
  const auto add = [&](std::string word) {
    if (text_width(line + " " + word, size, weight) > width) flush();
    while (text_width(word, size, weight) > width && word.size() > 1) {
      const std::size_t length = fitting(word, width, size, weight);
      if (length == word.size()) break;
      lines.push_back(word.substr(0, length));
      word.erase(0, length);
    }
    line.append(line.empty() ? "" : " ").append(word);
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) add(text.substr(at, end - at));
    at = end + 1;
  }
  flush();
  return lines;
}

double widest(const std::vector<std::string>& lines, double size, Weight weight) {
  double width = 0;
  for (const std::string& line : lines) width = std::max(width, text_width(line, size, weight));
  return width;
}

double widest(const std::vector<Tick>& all, double size) {
  double width = 0;
  for (const Tick& tick : all) width = std::max(width, text_width(tick.label, size));
  return width;
}

double middle_inside(double middle, const std::string& text, double size, double width) {
  const double half = text_width(text, size) / 2;
  return std::clamp(middle, half, std::max(half, width - half));
}

Touching touching_beside(const Scale1D& scale, double size, double width) {
  return [=](const Tick& before, const Tick& after) {
    const double left = middle_inside(scale(before.value), before.label, size, width);
    const double right = middle_inside(scale(after.value), after.label, size, width);
    const double half = (text_width(before.label, size) + text_width(after.label, size)) / 2;
    return right - left < half + 0.5 * size;
  };
}

Touching touching_above(const Scale1D& scale, double size) {
  return [=](const Tick& before, const Tick& after) {
    return std::abs(scale(before.value) - scale(after.value)) < 1.2 * size;
  };
}

std::vector<Tick> spaced_ticks(int wanted, const MakeTicks& make, const Touching& touching) {
  const auto touch = [&](const Tick& before, const Tick& after) { return touching(before, after); };
  for (; wanted > 1; --wanted) {
    std::vector<Tick> all = make(wanted);
    if (std::ranges::adjacent_find(all, touch) == all.end()) return all;
  }
  std::vector<Tick> kept;
  for (const Tick& tick : make(2))
    if (kept.empty() || !touching(kept.back(), tick)) kept.push_back(tick);
  return kept;
}

}  // namespace trainyard::reports
