// Power analysis: the number of seeds that a verdict needs, and what a planned number of seeds can detect.
// The results are planning values: they treat the measured effect and spread as the true ones. They are
// advice, not evidence.
#pragma once

#include <optional>

#include "reports/document/verdict.h"

namespace trainyard::reports {

// Power of two one-sided t tests (Schuirmann 1987) at level `alpha` each: the probability to find a true
// difference `mean` inside ±margin. The estimate has the true standard error `standard_error` and `freedom`
// degrees of freedom. By numeric integration over the distribution of the estimated spread.
double equivalence_power(double mean, double margin, double standard_error, double freedom, double alpha);

// Power to find a true difference `mean` outside the margin, two-sided level `alpha` (non-central t).
double shift_power(double mean, double margin, double standard_error, double freedom, double alpha);

// The smallest number of pairs (at least 3) that reaches `power` for pairs with mean difference `mean` and
// standard deviation `spread`. Empty if `most_seeds_planned` are not enough.
std::optional<int> seeds_needed(double mean, double spread, double margin, double alpha, double power = 0.8);

// A planned test of one cell, for `trainyard plan`. `level`: the nominal level of a look, for α divided by the
// number of cells in the family: the strictest level of Holm's correction.
struct PlannedTest {
  int n = 0;           // pairs, or runs of each arm
  bool paired = true;  // unpaired: Welch with equal spreads
  double margin = 0;   // δ, on the scale of the differences
  double level = 0.05;
};

// Lower end of the 95 % interval of the true standard deviation, from an estimate with `freedom` degrees of freedom:
// s · √(ν / χ²(0.975, ν)).
double lowest_spread(double spread, double freedom);

// What a planned test can detect.
struct Outlook {
  // Largest standard deviation of the differences (unpaired: of each arm) at which a true difference of 0
  // gives NO CHANGE with the required power.
  double widest_spread = 0;
  // Smallest true difference that gives IMPROVES or DETERIORATES with this power at that spread.
  double smallest_effect = 0;
};

// Empty if n is too small for a test.
std::optional<Outlook> outlook_of(const PlannedTest& test, double power = 0.8);

// Whether the margin is less than two steps of the accuracy, which changes in steps of 100/samples points.
bool too_coarse(double samples, double margin_points);

}  // namespace trainyard::reports
