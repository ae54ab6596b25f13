// How much of the error several looks at the same data use: the exact levels of a sequential t test. Every look
// tests at the same nominal p (Pocock 1977, Biometrika 64, 191–199). The probability that some look passes is
// exact for independent normal differences of any spread. It is a recursion over the looks (Jennison, Turnbull
// 1991, Exact calculations for sequential t, χ² and F tests, Biometrika 78, 133–141). With it, the smallest
// nominal p so far becomes a sequential p-value (Liu, Anderson 2008; Maurer, Bretz 2013). Pure functions, for
// sequential.h and for planning.
#pragma once

#include <vector>

namespace trainyard::reports {

// The numbers of pairs at the first and the last look; there is a look after every pair between them.
struct Looks {
  int first = 3;  // at least 3
  int last = 20;  // at least `first`; if equal, the test is a fixed one

  bool several() const { return first < last; }
};

// A(λ): the probability that a look of `looks` has a one-sided nominal p ≤ `nominal`, if the mean is on the
// margin. Exactly λ if there is one look. Otherwise:
// - It is 1 above λ = 0.4, because no look decides anything there.
// - The relative error is below 2e-7 for λ from 1e-10 to 0.03, and below 3e-5 up to 0.4 (3 … 20: 4e-6).
// - Below 1e-10 it is an upper bound, min(looks · λ, A(1e-10)).
// A call takes 0.1 µs, by interpolation. The first call with other looks makes a table in 0.4 s (3 … 20).
double crossing_probability(double nominal, Looks looks);

// The λ with A(λ) = `level`: what the nominal p of a look must reach, the same at each look. 0.4 if A(0.4) is
// below `level`. Relative error as above.
double nominal_level(double level, Looks looks);

// The terms of A(λ), by recursion without the table: the probability that the look at first, first + 1, … pairs
// is the first one with p ≤ `nominal`, for 0 < nominal ≤ 0.4. A call takes 8 ms (3 … 20), relative error 3e-8.
std::vector<double> exit_probabilities(double nominal, Looks looks);

}  // namespace trainyard::reports
