// Simulation of the error rates of verdicts: sweeps with known effects, judged by the procedure for real
// sweeps. Used by `bench_verdicts` and, with fewer sweeps and a fixed seed, by the tests of `reports`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/statistics/sequential_levels.h"

namespace trainyard::bench {

// A family of hypotheses: one metric and one arm, with one cell per effect. Differences are normal.
struct Sweep {
  std::string name;
  std::vector<double> effects;  // the true difference of each cell, in units of the margin δ
  double spread = 0.3;          // standard deviation of the differences, in units of δ
  reports::Looks looks;         // a cell gets pairs until it is decided
  double alpha = 0.05;
};

struct Rates {
  std::int64_t sweeps = 0;
  // Share of families with at least one wrong verdict of this kind.
  double wrong_shift = 0;      // IMPROVES, but the effect is ≤ δ; or DETERIORATES, but it is ≥ −δ
  double wrong_no_change = 0;  // NO CHANGE, but |effect| is ≥ δ
  double decided = 0;          // share of cells with a verdict
  double pairs = 0;            // of a cell, mean
  double covered = 0;          // share of 95 % intervals, at the end of a cell, that contain its effect
};
double standard_error(double rate, std::int64_t trials);

Rates simulate(const Sweep& sweep, std::int64_t sweeps, std::uint64_t seed);

// The sweeps of the table in docs/verdicts-and-statistics.md.
std::vector<Sweep> usual_sweeps();

}  // namespace trainyard::bench
