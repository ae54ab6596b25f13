#include "reports/statistics/sequential.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace trainyard::reports {

namespace {

constexpr int fewest_for_futility = 5;
constexpr double least_power = 0.05;  // of a cell that gets more pairs

// For mean > δ, < δ, > −δ, < −δ, in this order.
std::array<double, 4> p_of_look(std::span<const double> differences, double margin, Looks looks,
                                double least_spread) {
  const Estimate estimate = with_least_spread(paired_estimate(differences), least_spread);
  if (!std::isfinite(estimate.spread)) return {1, 1, 1, 1};
  const bool constant = estimate.spread == 0 || is_constant(estimate, margin);
  const auto p = [&](double distance) {
    if (constant) return distance > 0 ? std::pow(0.5, estimate.n) : 1.0;
    if (distance <= 0 && looks.several()) return 1.0;  // as every nominal p above 0.4
    return crossing_probability(upper_tail(distance / estimate.standard_error, estimate.freedom), looks);
  };
  const double above = estimate.mean - margin;
  const double below = estimate.mean + margin;
  return {p(above), p(-above), p(below), p(-below)};
}

// One family at one look. Cells without a look have p = 1.
void take_look(std::span<const SequentialCell> cells, std::size_t look, double alpha,
               std::vector<SequentialDecision>& decisions) {
  std::vector<double> p;
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    SequentialDecision& decision = decisions[cell];
    const std::vector<ThreeSided>& looks = cells[cell].p;
    if (look < looks.size() && !is_decided(decision.kind)) {
      decision.n = cells[cell].first + static_cast<int>(look);
      if (looks[look].cell < decision.p.cell || decision.earned == 0) decision.earned = decision.n;
      decision.p = looks[look];
    }
    p.push_back(decision.p.cell);
  }
  const std::vector<double> adjusted = holm(p);
  const auto passed = [&](std::size_t cell) { return adjusted[cell] <= alpha; };
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    SequentialDecision& decision = decisions[cell];
    if (is_decided(decision.kind)) continue;
    std::size_t before = 0;
    for (std::size_t other = 0; other < cells.size(); ++other)
      if (p[other] < p[cell] && passed(other)) ++before;
    decision.holm_level = alpha / static_cast<double>(cells.size() - before);
    decision.adjusted_p = adjusted[cell];
    if (passed(cell)) decision.kind = smallest_hypothesis(decision.p);
  }
}

// The limit at n pairs, by linear interpolation between `limits` (n, limit). After the last one it is constant.
double limit_at(double n, std::span<const std::pair<int, double>> limits) {
  for (std::size_t i = 1; i < limits.size(); ++i) {
    const auto [low, from] = limits[i - 1];
    const auto [high, to] = limits[i];
    if (n <= high) return from + (to - from) * (n - low) / (high - low);
  }
  return limits.back().second;
}

// d − d̄. Empty if there are fewer than `fewest`, or if the spread is only rounding.
std::vector<double> centred(std::span<const double> differences, std::size_t fewest) {
  if (differences.size() < fewest) return {};
  const Estimate estimate = paired_estimate(differences);
  if (!std::isnormal(estimate.spread) || is_constant(estimate, 0)) return {};
  std::vector<double> result(differences.begin(), differences.end());
  for (double& d : result) d -= estimate.mean;
  return result;
}

}  // namespace

VerdictKind smallest_hypothesis(const ThreeSided& p) {
  if (p.equivalent <= 2 * std::min(p.better, p.worse)) return VerdictKind::no_change;
  return p.better <= p.worse ? VerdictKind::improves : VerdictKind::deteriorates;
}

std::vector<ThreeSided> sequential_p(std::span<const double> differences, double margin, Looks looks,
                                     double least_spread) {
  std::array<double, 4> smallest{1, 1, 1, 1};
  std::vector<ThreeSided> result;
  const std::size_t last = std::min(differences.size(), static_cast<std::size_t>(looks.last));
  for (auto n = static_cast<std::size_t>(looks.first); n <= last; ++n) {
    const std::array<double, 4> now = p_of_look(differences.first(n), margin, looks, least_spread);
    for (std::size_t i = 0; i < now.size(); ++i) smallest[i] = std::min(smallest[i], now[i]);
    const auto [better, below_upper, above_lower, worse] = smallest;
    const double equivalent = std::max(below_upper, above_lower);
    result.push_back({better, worse, equivalent, std::min({1.0, 2 * better, 2 * worse, equivalent})});
  }
  return result;
}

std::vector<SequentialDecision> decide_family(std::span<const SequentialCell> cells, double alpha) {
  std::size_t looks = 0;
  for (const SequentialCell& cell : cells) looks = std::max(looks, cell.p.size());
  SequentialDecision none;
  none.holm_level = alpha / static_cast<double>(std::max<std::size_t>(cells.size(), 1));
  std::vector<SequentialDecision> decisions(cells.size(), none);
  for (std::size_t look = 0; look < looks; ++look) take_look(cells, look, alpha, decisions);
  return decisions;
}

Interval repeated_interval(const Estimate& estimate, double level, Looks looks) {
  if (estimate.standard_error == 0) return {estimate.mean, estimate.mean};
  const double half =
      upper_quantile(nominal_level((1 - level) / 2, looks), estimate.freedom) * estimate.standard_error;
  return {estimate.mean - half, estimate.mean + half};
}

double power_if_continued(const Estimate& estimate, double margin, Looks looks, double alpha) {
  if (estimate.n < 2 || estimate.n >= looks.last || !(estimate.spread > 0))
    throw InternalError("a forecast needs two different differences and a look to come");
  const double n = estimate.n;
  const double last = looks.last;
  // The mean of all pairs, given the data, is d̄ + scale · T.
  const double scale = estimate.spread * std::sqrt((last - n) / (n * last));
  const double error = estimate.spread / std::sqrt(last);
  const double shift = margin + upper_quantile(nominal_level(alpha / 2, looks), last - 1) * error;
  const double inside = margin - upper_quantile(nominal_level(alpha, looks), last - 1) * error;
  const auto above = [&](double place) { return upper_tail((place - estimate.mean) / scale, n - 1); };
  const double below_shift = upper_tail((estimate.mean + shift) / scale, n - 1);
  const double between = inside > 0 ? above(-inside) - above(inside) : 0;
  return above(shift) + below_shift + between;
}

bool hopeless(const Estimate& estimate, double margin, Looks looks, double alpha) {
  if (estimate.n < fewest_for_futility || estimate.n >= looks.last) return false;
  if (!std::isnormal(estimate.spread) || is_constant(estimate, margin)) return false;
  return power_if_continued(estimate, margin, looks, alpha) < least_power;
}

std::optional<Diagnostic> order_diagnostic(std::span<const double> differences) {
  static constexpr std::pair<int, double> limits[] = {
      {5, 2.07}, {6, 2.13}, {7, 2.15}, {8, 2.16}, {9, 2.18}, {10, 2.20}, {12, 2.22}, {15, 2.24}, {20, 2.25}};
  const std::vector<double> d = centred(differences, 5);
  if (d.empty()) return std::nullopt;
  double steps = 0;
  double squares = d[0] * d[0];
  for (std::size_t i = 1; i < d.size(); ++i) {
    steps += (d[i] - d[i - 1]) * (d[i] - d[i - 1]);
    squares += d[i] * d[i];
  }
  const auto n = static_cast<double>(d.size());
  return Diagnostic{(2 - steps / squares) / std::sqrt(4 * (n - 2) / (n * n - 1)), limit_at(n, limits)};
}

std::optional<Diagnostic> skewness_diagnostic(std::span<const double> differences) {
  static constexpr std::pair<int, double> limits[] = {{8, 2.42}, {20, 2.45}};
  const std::vector<double> d = centred(differences, 8);
  if (d.empty()) return std::nullopt;
  double squares = 0;
  double cubes = 0;
  for (const double x : d) {
    squares += x * x;
    cubes += x * x * x;
  }
  const auto n = static_cast<double>(d.size());
  const double g = std::sqrt(n) * cubes / std::pow(squares, 1.5);
  return Diagnostic{std::abs(g) / std::sqrt(6 * (n - 2) / ((n + 1) * (n + 3))), limit_at(n, limits)};
}

}  // namespace trainyard::reports
