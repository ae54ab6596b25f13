#include "reports/statistics/sequential_levels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/tools/roots.hpp>

#include "base/error.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

constexpr double lowest = 1e-10, highest = 0.4;  // λ in the tables
constexpr double quarter_turn = std::numbers::pi / 2;

double power(double base, int exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 == 1) result *= base;
  return result;
}

// A function on an interval, from its values at Chebyshev nodes. By θ = acos x they are equidistant, and the function
// is even at both ends. The polynomial through the eight nearest nodes, mirrored at the ends, is its value.
template <std::size_t count>
class NearestNodes {
 public:
  template <typename Function>
  NearestNodes(double low, double high, const Function& function)
      : middle_((low + high) / 2), half_((high - low) / 2) {
    for (std::size_t node = 0; node < count; ++node)
      values_[node + side] = function(middle_ + half_ * std::cos((static_cast<double>(node) + 0.5) * step));
    for (std::size_t i = 0; i < side; ++i) {
      values_[side - 1 - i] = values_[side + i];
      values_[side + count + i] = values_[side + count - 1 - i];
    }
  }

  double operator()(double x) const {
    const double place = std::acos(std::clamp((x - middle_) / half_, -1.0, 1.0)) / step + (side - 0.5);
    const auto start = static_cast<std::size_t>(place) - (side - 1);
    double sum = 0;
    double weights = 0;
    for (std::size_t i = 0; i < 2 * side; ++i) {
      const double distance = place - static_cast<double>(start + i);
      if (distance == 0) return values_[start + i];
      const double weight = binomial[i] / distance;
      sum += weight * values_[start + i];
      weights += weight;
    }
    return sum / weights;
  }

 private:
  static constexpr std::size_t side = 4;  // nodes on each side of x
  static constexpr std::array<double, 2 * side> binomial{1, -7, 21, -35, 35, -21, 7, -1};
  static constexpr double step = std::numbers::pi / count;

  double middle_, half_;
  std::array<double, count + 2 * side> values_{};
};

// The differences from the margin x_1, x_2, … are independent N(0, σ²). V_n = Σx / √Σx² increases with Student's
// t and does not depend on σ. Given V_n = v, the direction of (x_1 … x_n) is uniform on a circle of latitude.
// So x_n / √Σx² = v/n + r sin w with r² = (1 − v²/n)(n − 1)/n, and w has a density proportional to cos^(n−3) w.
// This is the Markov chain of V, run backwards. `alive` at n is P(no boundary crossed before n | V_n = v). It is
// the mean of `alive` at n − 1 over the w whose V_(n−1) is below its boundary.
class BackwardChain {
 public:
  explicit BackwardChain(int first) : n_(first), first_(first) {}

  // The probability that the look at n pairs is the first with p ≤ `nominal`. Then goes to the next look.
  double cross(double nominal) {
    const double t = upper_quantile(nominal, n_ - 1);
    const double v = std::sqrt(n_) * t / std::sqrt(t * t + n_ - 1);
    const double probability = n_ == first_ ? nominal : exit(v);
    if (n_ > first_)
      table_ = Table(-quarter_turn, angle_of(v, n_),
                     [&](double angle) { return alive(std::sqrt(n_) * std::sin(angle)); });
    ++n_;
    boundary_ = v;
    return probability;
  }

 private:
  using Table = NearestNodes<128>;
  using Quadrature = boost::math::quadrature::gauss<double, 25>;

  static double angle_of(double v, int n) { return std::asin(std::clamp(v / std::sqrt(n), -1.0, 1.0)); }

  // The largest V_n that can follow a V_(n−1) below the boundary.
  double most() const { return std::sqrt(1 + boundary_ * boundary_); }

  // ∫ density(v) · alive(v) dv from `v` to `most`, with v = most · sin ψ.
  double exit(double v) const {
    if (v >= most()) return 0;
    const auto part = [&](double angle) {
      const double at = most() * std::sin(angle);
      return std::pow(1 - at * at / n_, (n_ - 3) / 2.0) * alive(at) * most() * std::cos(angle);
    };
    return Quadrature::integrate(part, std::asin(v / most()), quarter_turn) /
           (std::sqrt(n_) * boost::math::beta(0.5, (n_ - 1) / 2.0));
  }

  double alive(double v) const {
    if (v >= most()) return 0;
    const double square = most() * most();
    const double root = boundary_ * std::sqrt(std::max(square - v * v, 0.0));
    const double radius = std::sqrt(std::max(1 - v * v / n_, 0.0) * (n_ - 1) / n_) + 1e-300;
    const auto limit = [&](double y) { return std::asin(std::clamp((y - v / n_) / radius, -1.0, 1.0)); };
    const double low = v > -1 ? limit((v - root) / square) : -quarter_turn;
    const double high = v > 1 ? limit((v + root) / square) : quarter_turn;
    const auto part = [&](double w) {
      const double y = v / n_ + radius * std::sin(w);
      const double before = std::min((v - y) / std::sqrt(std::max(1 - y * y, 1e-300)), boundary_);
      return power(std::cos(w), n_ - 3) * (table_ ? (*table_)(angle_of(before, n_ - 1)) : 1);
    };
    return Quadrature::integrate(part, low, high) / boost::math::beta(0.5, (n_ - 2) / 2.0);
  }

  int n_, first_;
  double boundary_ = 0;         // of V at n − 1 pairs
  std::optional<Table> table_;  // `alive` at n − 1, by the angle asin(v / √(n − 1)); 1 if empty
};

using LogTable = NearestNodes<48>;

// ln A by ln λ. It is made once, with 48 recursions.
const LogTable& table_of(Looks looks) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, LogTable> tables;
  const std::lock_guard lock(mutex);
  const std::pair key(looks.first, looks.last);
  const auto found = tables.find(key);
  if (found != tables.end()) return found->second;
  const auto value = [&](double log_nominal) {
    const std::vector<double> exits = exit_probabilities(std::exp(log_nominal), looks);
    return std::log(std::accumulate(exits.begin(), exits.end(), 0.0));
  };
  return tables.try_emplace(key, std::log(lowest), std::log(highest), value).first->second;
}

double number_of(Looks looks) {
  if (looks.first < 3 || looks.last < looks.first)
    throw InternalError("looks begin at three pairs or more, and end later");
  return looks.last - looks.first + 1;
}

}  // namespace

double crossing_probability(double nominal, Looks looks) {
  const double number = number_of(looks);
  if (number == 1 || nominal <= 0) return std::max(nominal, 0.0);
  if (nominal > highest) return 1;
  const double probability = std::exp(table_of(looks)(std::log(std::max(nominal, lowest))));
  return nominal < lowest ? std::min(number * nominal, probability) : probability;
}

double nominal_level(double level, Looks looks) {
  const double number = number_of(looks);
  if (number == 1) return level;
  if (level <= number * lowest) return level / number;
  const LogTable& table = table_of(looks);
  const auto gap = [&](double log_nominal) { return table(log_nominal) - std::log(level); };
  const double low = std::log(level / number);
  const double high = std::log(std::min(level, highest));
  if (gap(high) <= 0) return std::exp(high);
  std::uintmax_t steps = 100;
  const auto root =
      boost::math::tools::toms748_solve(gap, low, high, boost::math::tools::eps_tolerance<double>(44), steps);
  return std::exp(root.first);
}

std::vector<double> exit_probabilities(double nominal, Looks looks) {
  number_of(looks);
  BackwardChain chain(looks.first);
  std::vector<double> exits;
  for (int n = looks.first; n <= looks.last; ++n) exits.push_back(chain.cross(nominal));
  return exits;
}

}  // namespace trainyard::reports
