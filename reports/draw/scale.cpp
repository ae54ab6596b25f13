#include "reports/draw/scale.h"

#include <algorithm>
#include <array>
#include <cmath>

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

}  // namespace trainyard::reports
