#include "reports/statistics/power_analysis.h"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>

#include "reports/statistics/sequential.h"

namespace trainyard::reports {

using boost::math::cdf;
using boost::math::complement;

double equivalence_power(double mean, double margin, double standard_error, double freedom, double alpha) {
  const double critical = upper_quantile(alpha, freedom);
  const boost::math::normal normal;
  const boost::math::chi_squared squared_spread(freedom);
  // If the estimated spread is u times the true one, both tests reject if the mean is within ±(δ − t·u·SE).
  const auto found = [&](double u) {
    const double reach = margin - critical * u * standard_error;
    if (reach <= 0) return 0.0;
    const double chance =
        cdf(normal, (reach - mean) / standard_error) - cdf(normal, (-reach - mean) / standard_error);
    return chance * 2 * freedom * u * boost::math::pdf(squared_spread, freedom * u * u);
  };
  const double widest =
      std::min(margin / (critical * standard_error),
               std::sqrt(boost::math::quantile(complement(squared_spread, 1e-12)) / freedom));
  return boost::math::quadrature::gauss_kronrod<double, 61>::integrate(found, 0.0, widest, 10, 1e-9);
}

double shift_power(double mean, double margin, double standard_error, double freedom, double alpha) {
  const double critical = upper_quantile(alpha / 2, freedom);
  const boost::math::non_central_t shifted(freedom, (std::abs(mean) - margin) / standard_error);
  return cdf(complement(shifted, critical));
}

double lowest_spread(double spread, double freedom) {
  return spread * std::sqrt(freedom / quantile(boost::math::chi_squared(freedom), 0.975));
}

std::optional<int> seeds_needed(double mean, double spread, double margin, double alpha, double power) {
  if (!(spread > 0) || !std::isfinite(spread)) return std::nullopt;
  const bool inside = std::abs(mean) < margin;
  for (int n = 3; n <= most_seeds_planned; ++n) {
    const double standard_error = spread / std::sqrt(n);
    const double reached = inside ? equivalence_power(mean, margin, standard_error, n - 1, alpha)
                                  : shift_power(mean, margin, standard_error, n - 1, alpha);
    if (reached >= power) return n;
  }
  return std::nullopt;
}

namespace {

// Bisection: the place in [low, high] where `holds` changes from true to false.
template <typename Predicate>
double last_that_holds(double low, double high, const Predicate& holds) {
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

std::optional<Outlook> outlook_of(const PlannedTest& test, double power) {
  if (test.n < fewest_pairs) return std::nullopt;
  const double freedom = test.paired ? test.n - 1 : 2 * test.n - 2;
  const double error_per_spread = std::sqrt((test.paired ? 1.0 : 2.0) / test.n);
  Outlook outlook;
  outlook.widest_spread = last_that_holds(1e-6 * test.margin, 100 * test.margin, [&](double spread) {
    return equivalence_power(0, test.margin, spread * error_per_spread, freedom, test.level) >= power;
  });
  const double error = outlook.widest_spread * error_per_spread;
  outlook.smallest_effect = last_that_holds(test.margin, 1000 * test.margin, [&](double effect) {
    return shift_power(effect, test.margin, error, freedom, test.level) < power;
  });
  return outlook;
}

bool too_coarse(double samples, double margin_points) {
  return samples > 0 && 100 / samples > margin_points / 2;
}

}  // namespace trainyard::reports
