// Sweeps of known truth, judged by the procedure that judges real ones: how often is a word wrong? Used by
// the program `bench_verdicts` and, in a short version with a fixed seed, by the tests of `reports`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainyard::bench {

// A family: one metric and one arm over as many cells as there are effects. Differences are normal.
struct Sweep {
  std::string name;
  std::vector<double> effects;  // the true difference of each cell, in units of δ
  double spread = 0.4;          // of single differences, in units of δ
  std::vector<int> looks{5};    // pairs at each look; a later one is made where a cell is not decided
  double alpha = 0.05;
};

struct Rates {
  std::int64_t sweeps = 0;
  // Share of families with at least one wrong word of this kind.
  double false_improves = 0;      // where the effect is ≤ δ
  double false_deteriorates = 0;  // ≥ −δ
  double false_no_change = 0;     // |effect| ≥ δ
  double covered = 0;             // share of 95 % intervals of the first look that hold the effect
  double decided = 0;             // share of cells with a word
  double no_change = 0;           // share of cells with an effect inside the margin that are found so
};
double standard_error(double rate, std::int64_t trials);

Rates simulate(const Sweep& sweep, std::int64_t sweeps, std::uint64_t seed);

// The families that bench/README.md has a table of.
std::vector<Sweep> usual_sweeps();

}  // namespace trainyard::bench
