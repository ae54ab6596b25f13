// Power analysis: how many seeds a verdict needs, and what a plan of seeds can find.
//
// How many seeds a verdict would need: planning values that an INCONCLUSIVE cell prints. They take the
// measured effect and spread for the true ones, so they are advice, never evidence.
#pragma once

#include <optional>

namespace trainyard::reports {

inline constexpr int most_seeds_planned = 100;

// Power of two one-sided t tests (Schuirmann 1987) at level `alpha` each: the chance to find a true
// difference `mean` inside ±margin, where its estimate has the true standard error `standard_error` and
// `freedom` degrees of freedom. By numeric integration over the distribution of the estimated spread.
double equivalence_power(double mean, double margin, double standard_error, double freedom, double alpha);

// Power to find a true difference `mean` outside the margin, two-sided level `alpha` (non-central t).
double shift_power(double mean, double margin, double standard_error, double freedom, double alpha);

// The smallest n ≥ 3 of pairs that reaches `power` for difference `mean` and spread `spread` of single pairs;
// empty where not even `most_seeds_planned` do.
std::optional<int> seeds_needed(double mean, double spread, double margin, double alpha, double power = 0.8);

// What a plan can find out, before anything runs: from the number of seeds alone, how small a spread NO
// CHANGE needs and which effects are found then. Planning values (power 0.8), never evidence. Used by
// `trainyard plan`.

// One cell of a family, tested at `level` (the look's part of α over the cells of the family: Holm's
// hardest).
struct PlannedTest {
  int n = 0;           // pairs, or runs of each arm
  bool paired = true;  // unpaired: Welch with equal spreads
  double margin = 0;   // δ, on the scale of the differences
  double level = 0.05;
};

struct Outlook {
  // The largest standard deviation of the differences (unpaired: of each arm) at which a true difference of 0
  // is found to be NO CHANGE with the power.
  double widest_spread = 0;
  // The smallest true difference that IMPROVES or DETERIORATES with the power at that spread.
  double smallest_effect = 0;
};

// Empty where n is below what can be tested.
std::optional<Outlook> outlook_of(const PlannedTest& test, double power = 0.8);

// Differences of accuracy move in steps of 100/samples points: none of them lies well inside a margin of less
// than two.
bool too_coarse(double samples, double margin_points);

}  // namespace trainyard::reports
