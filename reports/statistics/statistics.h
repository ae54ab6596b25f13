// The statistics of a verdict: pure functions. Formulas and reference values are in
// docs/verdicts-and-statistics.md (Goeman, Solari, Stijnen 2010; Holm 1979; Welch 1947). Distributions are
// from Boost.Math.
#pragma once

#include <span>
#include <vector>

#include "reports/document/verdict.h"

namespace trainyard::reports {

// The mean, with Kahan's compensated sum. NaN if there are no values. Means and standard deviations have the
// same bits as those of `groupby` in pandas 2.3, because the algorithms and their order of operations are the same.
double mean_of(std::span<const double> values);
double median(std::vector<double> values);  // NaN if there are no values

// Of Student's t: P(T ≥ t), also if it is small, and the t with P(T ≥ t) = p.
double upper_tail(double t, double freedom);
double upper_quantile(double p, double freedom);

// Mean difference, its standard error and degrees of freedom.
struct Estimate {
  double mean = 0;
  double standard_error = 0;
  double freedom = 0;
  int n = 0;
  double spread = 0;  // s_d, the standard deviation of the differences
};

Estimate paired_estimate(std::span<const double> differences);                           // ν = n − 1
Estimate welch_estimate(std::span<const double> baseline, std::span<const double> arm);  // arm − baseline

// The same with a spread of at least `least`, for paired differences that are measured in steps.
Estimate with_least_spread(Estimate estimate, double least);

// Whether the spread is only rounding (s_d < 1e-12 · max(|d̄|, δ)). Then there is no t test.
bool is_constant(const Estimate& estimate, double margin);

Interval confidence_interval(const Estimate& estimate, double level);  // two-sided: level 0.95

// The p-values of the three-sided test against the margin δ, see docs/verdicts-and-statistics.md. The spread must not
// be 0.
struct ThreeSided {
  double better = 1;      // p₊
  double worse = 1;       // p₋
  double equivalent = 1;  // p₌
  double cell = 1;        // min(1, 2p₊, 2p₋, p₌)
};
ThreeSided three_sided_test(const Estimate& estimate, double margin);

// Holm's step-down adjusted p-values, in the order given.
std::vector<double> holm(std::span<const double> p);

}  // namespace trainyard::reports
