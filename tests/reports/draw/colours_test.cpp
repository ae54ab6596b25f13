// Contrast of neighbouring colours in figures, light and dark. The ratio is that of WCAG 2.1.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "reports/draw/assets.h"

namespace trainyard::reports {
namespace {

using Rgb = std::array<double, 3>;  // 0 – 1

// The colours of one theme: the first rule with `before` in front of it.
std::string rule_after(const std::string& before) {
  const std::string css(page_css());
  const std::size_t from = css.find('{', css.find(before));
  return css.substr(from, css.find('}', from) - from);
}

Rgb colour_in(const std::string& rule, const std::string& role) {
  const std::size_t at = rule.find("--" + role + ":");
  REQUIRE_MESSAGE(at != std::string::npos, role);
  std::string digits = rule.substr(rule.find('#', at) + 1, 6);
  if (digits[3] == ';') digits = {digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]};
  Rgb colour{};
  for (std::size_t i = 0; i < 3; ++i) colour[i] = std::stoi(digits.substr(2 * i, 2), nullptr, 16) / 255.0;
  return colour;
}

double luminance(const Rgb& colour) {
  const auto linear = [](double value) {
    return value <= 0.03928 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2]);
}

double contrast(const Rgb& one, const Rgb& other) {
  const auto [dark, light] = std::minmax({luminance(one), luminance(other)});
  return (light + 0.05) / (dark + 0.05);
}

const std::vector<std::string> themes{":root", "not([data-theme", ":root[data-theme=\"dark\"]"};

TEST_CASE("white on black has the contrast 21") {
  CHECK(contrast({1, 1, 1}, {0, 0, 0}) == doctest::Approx(21));
}

TEST_CASE("neighbouring parts of the time breakdown have a contrast of at least 1.7, light and dark") {
  // In the order of the bars. Without pipeline or replicas, some parts between two others have no length.
  const std::vector<std::string> parts{"forward", "backward", "optimizer", "communication",
                                       "bubble",  "data",     "other"};
  for (const std::string& theme : themes) {
    CAPTURE(theme);
    const std::string rule = rule_after(theme);
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::size_t j = i + 1; j < parts.size(); ++j) {
        if (j > i + 1 && i < 2) continue;  // forward and backward are never left out
        CAPTURE(parts[i]);
        CAPTURE(parts[j]);
        CHECK(contrast(colour_in(rule, parts[i]), colour_in(rule, parts[j])) >= 1.7);
      }
  }
}

}  // namespace
}  // namespace trainyard::reports
