#include "reports/statistics/outlook.h"

#include <cmath>

#include "reports/statistics/planning.h"
#include "reports/statistics/procedure.h"

namespace trainyard::reports {

namespace {

double freedom_of(const PlannedTest& test) {
  return test.paired ? test.n - 1 : 2 * test.n - 2;
}

double standard_error_of(const PlannedTest& test, double spread) {
  return spread * std::sqrt((test.paired ? 1.0 : 2.0) / test.n);
}

// The place in [low, high] where `holds` changes from true to false.
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
  Outlook outlook;
  outlook.widest_spread = last_that_holds(1e-6 * test.margin, 100 * test.margin, [&](double spread) {
    return equivalence_power(0, test.margin, standard_error_of(test, spread), freedom_of(test), test.level) >=
           power;
  });
  const double error = standard_error_of(test, outlook.widest_spread);
  outlook.smallest_effect = last_that_holds(test.margin, 1000 * test.margin, [&](double effect) {
    return shift_power(effect, test.margin, error, freedom_of(test), test.level) < power;
  });
  return outlook;
}

bool too_coarse(double samples, double margin_points) {
  return samples > 0 && 100 / samples > margin_points / 2;
}

}  // namespace trainyard::reports
