// Verdicts with a look after every pair: sequential p-values of each cell, and Holm's correction over the cells of
// a family (one metric and one arm) after each look. Pure functions, for `verdict` and for simulations.
//
// - The looks of a plan are fixed before the first pair. Every look tests at the same nominal p.
// - The smallest nominal p so far becomes a sequential p-value, which never increases (see sequential_levels.h).
//   It is valid at every stopping time, also if stopping depends on other cells (Maurer, Bretz 2013, Multiple
//   Testing in Group Sequential Trials Using Graphical Approaches, Stat. Biopharm. Res. 5).
// - A word is final. All cells stay in the family: decided ones, stopped ones, and those without a look (P = 1).
// - With one look this is the fixed test, three_sided_test with holm, except for constant differences.
//
// Reference: docs/verdicts-and-statistics.md. Differences are positive if the arm is better.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "reports/document/verdict.h"
#include "reports/statistics/sequential_levels.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

// The sequential p-values of a cell after the looks at first, first + 1, … pairs, until the differences or the looks
// end. `differences`: in the order of the plan. `least_spread`: a lower limit of their standard deviation.
// - If all differences are equal, there is no t test. Then the sign test about the median gives 2⁻ⁿ. Its events are
//   nested, so looking costs nothing. The smaller p of both tests counts.
// - A look at a difference that is not finite is not a test. It repeats the p before it, at first 1.
std::vector<ThreeSided> sequential_p(std::span<const double> differences, double margin, Looks looks,
                                     double least_spread = 0);

inline constexpr int fewest_pairs = 3;  // for a test

// The word with the smallest p of the three. NO CHANGE if its p is at most twice the others.
VerdictKind smallest_hypothesis(const ThreeSided& p);

// A cell of a family. Without a look it counts with p = 1.
struct SequentialCell {
  std::vector<ThreeSided> p;  // after each look, as from sequential_p
  int first = fewest_pairs;   // pairs at the first of them
};

struct SequentialDecision {
  VerdictKind kind = VerdictKind::inconclusive;
  int n = 0;  // pairs at the look that decided, else at its last look; 0: there was none
  // Pairs at the look that gave its p. If it is less than n, another cell's word relaxed Holm later.
  int earned = 0;
  ThreeSided p;  // sequential
  double adjusted_p = 1;
  double holm_level = 0;  // the threshold of p.cell: α divided by Holm's factor
};

// Decides a family. The k-th looks of all cells are one look of the family. A cell whose data ended has fewer looks.
// Looks after a cell's word do not count. The decisions are in the same order.
std::vector<SequentialDecision> decide_family(std::span<const SequentialCell> cells, double alpha);

// The interval d̄ ± q·SE that covers the mean at all looks at once with probability `level`, for example 0.95.
Interval repeated_interval(const Estimate& estimate, double level, Looks looks);

// The probability that the last look alone gives a word at level `alpha`, given the data (predictive, flat prior).
// The estimate has n < looks.last pairs and a spread above zero.
double power_if_continued(const Estimate& estimate, double margin, Looks looks, double alpha);

// Whether to stop a cell without a word: from five pairs on, if that power is below 5 %. Advice, because stopping
// never adds to the errors and neither does ignoring it (non-binding futility). Never for constant differences.
bool hopeless(const Estimate& estimate, double margin, Looks looks, double alpha);

// A diagnostic as standard score, with its limit. An alarm never changes a word, and silence proves nothing.
struct Diagnostic {
  double score = 0;
  double limit = 0;  // exceeded by 1 % of normal samples; interpolated linearly between simulated ones
  bool alarm() const { return score > limit; }
};

// Whether neighbours in time are alike: z = (2 − r) / √(4(n − 2)/(n² − 1)), r = Σ(d_(i+1) − d_i)² / Σ(d_i − d̄)²
// (von Neumann 1941). Empty below five pairs, or if the differences are constant.
std::optional<Diagnostic> order_diagnostic(std::span<const double> differences);

// Whether one arm has bad runs of its own: |g| in standard errors (D'Agostino 1970). The limit is for each side.
// Empty below eight pairs, or if the differences are constant.
std::optional<Diagnostic> skewness_diagnostic(std::span<const double> differences);

}  // namespace trainyard::reports
