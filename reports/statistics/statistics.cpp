#include "reports/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <boost/math/distributions/students_t.hpp>

#include "base/error.h"

namespace trainyard::reports {

using boost::math::complement;
using boost::math::students_t;

namespace {

// Relative spread below which differences are equal except for rounding, so there is nothing to test.
constexpr double constant_spread = 1e-12;

// Welford's algorithm (1962), in the order of pandas, see mean_of.
double variance_of(std::span<const double> values) {
  double mean = 0;
  double sum = 0;
  double count = 0;
  for (const double value : values) {
    const double before = mean;
    mean += (value - before) / ++count;
    sum += (value - mean) * (value - before);
  }
  return sum / (count - 1);
}

// The t with P(|T| ≤ t) = level. The points of a curve mostly have the same number of seeds, so the last one
// is kept.
double two_sided_quantile(double freedom, double level) {
  struct Last {
    double freedom, level, t;
  };
  thread_local Last last{};
  if (last.freedom != freedom || last.level != level)
    last = {freedom, level, upper_quantile((1 - level) / 2, freedom)};
  return last.t;
}

}  // namespace

double upper_tail(double t, double freedom) {
  return boost::math::cdf(complement(students_t(freedom), t));
}

double upper_quantile(double p, double freedom) {
  return boost::math::quantile(complement(students_t(freedom), p));
}

double mean_of(std::span<const double> values) {
  double sum = 0;
  double compensation = 0;
  for (const double value : values) {
    const double corrected = value - compensation;
    const double next = sum + corrected;
    compensation = next - sum - corrected;
    sum = next;
  }
  return sum / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Estimate paired_estimate(std::span<const double> differences) {
  if (differences.size() < 2) throw InternalError("an estimate needs two differences or more");
  Estimate estimate;
  const auto n = static_cast<double>(differences.size());
  estimate.n = static_cast<int>(differences.size());
  estimate.mean = mean_of(differences);
  estimate.spread = std::sqrt(variance_of(differences));
  estimate.standard_error = estimate.spread / std::sqrt(n);
  estimate.freedom = n - 1;
  return estimate;
}

// Welch (1947): ν = (u + v)² / (u²/(nₐ − 1) + v²/(n_b − 1)) with u = sₐ²/nₐ, v = s_b²/n_b.
Estimate welch_estimate(std::span<const double> baseline, std::span<const double> arm) {
  if (baseline.size() < 2 || arm.size() < 2) throw InternalError("an estimate needs two values in each arm");
  const auto count_a = static_cast<double>(baseline.size());
  const auto count_b = static_cast<double>(arm.size());
  const double mean_a = mean_of(baseline);
  const double mean_b = mean_of(arm);
  const double variance_a = variance_of(baseline);
  const double variance_b = variance_of(arm);
  const double u = variance_a / count_a;
  const double v = variance_b / count_b;
  Estimate estimate;
  estimate.n = static_cast<int>(std::min(baseline.size(), arm.size()));
  estimate.mean = mean_b - mean_a;
  estimate.spread = std::sqrt(variance_a + variance_b);
  estimate.standard_error = std::sqrt(u + v);
  const double denominator = u * u / (count_a - 1) + v * v / (count_b - 1);
  estimate.freedom = denominator > 0 ? (u + v) * (u + v) / denominator : count_a + count_b - 2;
  return estimate;
}

Estimate with_least_spread(Estimate estimate, double least) {
  if (estimate.spread < least) {
    estimate.spread = least;
    estimate.standard_error = least / std::sqrt(estimate.n);
  }
  return estimate;
}

bool is_constant(const Estimate& estimate, double margin) {
  return estimate.spread < constant_spread * std::max(std::abs(estimate.mean), margin);
}

Interval confidence_interval(const Estimate& estimate, double level) {
  if (estimate.standard_error == 0) return {estimate.mean, estimate.mean};
  const double t = two_sided_quantile(estimate.freedom, level);
  return {estimate.mean - t * estimate.standard_error, estimate.mean + t * estimate.standard_error};
}

ThreeSided three_sided_test(const Estimate& estimate, double margin) {
  const double above = (estimate.mean - margin) / estimate.standard_error;
  const double below = (estimate.mean + margin) / estimate.standard_error;
  ThreeSided p;
  p.better = upper_tail(above, estimate.freedom);
  p.worse = upper_tail(-below, estimate.freedom);
  p.equivalent = std::max(upper_tail(below, estimate.freedom), upper_tail(-above, estimate.freedom));
  p.cell = std::min({1.0, 2 * p.better, 2 * p.worse, p.equivalent});
  return p;
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    largest = std::max(largest, static_cast<double>(p.size() - rank) * p[order[rank]]);
    adjusted[order[rank]] = std::min(1.0, largest);
  }
  return adjusted;
}

}  // namespace trainyard::reports
