// Simulation of the error rates of verdicts: sweeps with known effects, judged by the procedure for real
// sweeps. Used by `bench_verdicts` and, with fewer sweeps and a fixed seed, by the tests of `reports`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainyard::bench {

// A family of hypotheses: one metric and one arm, with one cell per effect. Differences are normal.
struct Sweep {
  std::string name;
  std::vector<double> effects;  // the true difference of each cell, in units of the margin δ
  double spread = 0.4;          // standard deviation of the differences, in units of δ
  std::vector<int> looks{5};    // pairs per interim analysis; a later one only for undecided cells
  double alpha = 0.05;
};

struct Rates {
  std::int64_t sweeps = 0;
  // Share of families with at least one wrong verdict of this kind.
  double false_improves = 0;      // IMPROVES, but the effect is ≤ δ
  double false_deteriorates = 0;  // DETERIORATES, but the effect is ≥ −δ
  double false_no_change = 0;     // NO CHANGE, but |effect| is ≥ δ
  double covered = 0;             // share of 95 % intervals of the first analysis that contain the effect
  double decided = 0;             // share of cells with a verdict
  double no_change = 0;           // share of NO CHANGE among the cells with |effect| < δ
};
double standard_error(double rate, std::int64_t trials);

Rates simulate(const Sweep& sweep, std::int64_t sweeps, std::uint64_t seed);

// The sweeps of the table in bench/README.md.
std::vector<Sweep> usual_sweeps();

}  // namespace trainyard::bench
