#include "reports/statistics/planning.h"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>

namespace trainyard::reports {

using boost::math::cdf;
using boost::math::complement;
using boost::math::students_t;

double equivalence_power(double mean, double margin, double standard_error, double freedom, double alpha) {
  const double critical = boost::math::quantile(complement(students_t(freedom), alpha));
  const boost::math::normal normal;
  const boost::math::chi_squared squared_spread(freedom);
  // At an estimated spread of u times the true one both tests reject where the mean is within ±(δ − t·u·SE).
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
  const double critical = boost::math::quantile(complement(students_t(freedom), alpha / 2));
  const boost::math::non_central_t shifted(freedom, (std::abs(mean) - margin) / standard_error);
  return cdf(complement(shifted, critical));
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

}  // namespace trainyard::reports
