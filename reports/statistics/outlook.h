// What a plan can find out, before anything runs: from the number of seeds alone, how small a spread NO
// CHANGE needs and which effects are found then. Planning values (power 0.8), never evidence. Used by
// `trainyard plan`.
#pragma once

#include <optional>

namespace trainyard::reports {

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
