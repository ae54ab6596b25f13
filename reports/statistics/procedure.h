// From p-values to verdicts: Holm's correction over the cells of one metric and one arm (a family), look by
// look. See docs/verdicts-and-statistics.md. Pure functions. `verdict` calls them with results, and `bench/`
// with simulated sweeps of known truth, so the simulation tests the code that decides.
//
// Each look has its own part of α. A cell that one look has decided is not in the family of the next look. By
// closed testing its share passes to the other cells (Maurer, Bretz 2013, Multiple Testing in Group
// Sequential Trials Using Graphical Approaches). The parts of all looks add up to α, and so do the error
// probabilities.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "reports/document/verdict.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

inline constexpr int fewest_pairs = 3;  // for a test

// The verdict with the smallest p of the three. NO CHANGE if its p is at most twice the others.
VerdictKind smallest_hypothesis(const ThreeSided& p);

// The part of α for a look (counted from 0): 0.8 α, then 0.2 α/2, 0.2 α/4, … With `final_look`, the first
// look has all of α and later looks have nothing.
double level_of_look(std::size_t look, double alpha, bool final_look);

// One cell at one look. Without p it was not tested: runs are missing, or the verdict is not from a test. It
// still counts in its family, with p = 1, so decisions on other cells stay when it is complete.
struct LookTest {
  std::optional<ThreeSided> p;
  double level = 0;
};

struct Decision {
  VerdictKind kind = VerdictKind::inconclusive;
  std::optional<std::size_t> look;  // that decided, else the last tested look; empty: no look was tested
  double adjusted_p = 1;            // Holm, at that look
  double holm_level = 0;            // the threshold at that look: its level divided by Holm's factor
  std::vector<std::optional<VerdictKind>> by_look;  // result of each look alone; empty if it was not tested
};

// Decides a family. `cells`: the looks of each cell. The decisions are in the same order.
std::vector<Decision> decide_family(std::span<const std::vector<LookTest>> cells);

}  // namespace trainyard::reports
