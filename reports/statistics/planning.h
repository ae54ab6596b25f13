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

}  // namespace trainyard::reports
