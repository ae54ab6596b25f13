// From p-values to verdicts: Holm's correction over the cells of one metric and one arm (a family), look by
// look. docs/verdicts-and-statistics.md explains it. Pure functions. `verdict` calls them with results, and
// `bench/` with simulated sweeps of known truth, so the simulation tests the code that decides.
//
// Each look has its own part of α. A cell that one look has decided is not in the family of the next look: by
// closed testing its share passes to the cells that are left (Maurer, Bretz 2013, Multiple Testing in Group
// Sequential Trials Using Graphical Approaches). The parts of all looks add up to α, and so do the errors.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/statistics/statistics.h"

namespace trainyard::reports {

inline constexpr int fewest_pairs = 3;  // that are tested

// The last five are not answers of a test:
// - interim: planned runs have not finished
// - not_timed: the placement of the ranks makes the times useless (more ranks than devices)
// - no_data: one of the two arms has no number at all
// - not_comparable, broken: by the fair-comparison contract
enum class VerdictKind {
  improves,
  no_change,
  deteriorates,
  inconclusive,
  interim,
  not_timed,
  no_data,
  not_comparable,
  broken
};

std::string text_of(VerdictKind word);  // "IMPROVES", "NO CHANGE", …
bool is_decided(VerdictKind word);      // improves, no change or deteriorates

// The hypothesis whose p is the smallest of the three, and so the word of a decision. NO CHANGE if its own is
// no larger than twice the others.
VerdictKind smallest_word(const ThreeSided& p);

// The part of α that a look spends, from 0: 0.8 α, then 0.2 α/2, 0.2 α/4, …; with `final_look` all of α for
// the first look and nothing for those after it.
double level_of_look(std::size_t look, double alpha, bool final_look);

// One cell at one look. Without p it was not tested: runs are missing, or something else decided. It still
// counts in its family, with p = 1: what is decided beside it stays decided when it is complete.
struct LookTest {
  std::optional<ThreeSided> p;
  double level = 0;
};

struct Decision {
  VerdictKind word = VerdictKind::inconclusive;
  std::optional<std::size_t> look;  // that decided; else the last one that was tested; empty: none was
  double adjusted_p = 1;            // Holm, at that look
  double holm_level = 0;            // that it passed or failed at: the look's level over Holm's factor
  std::vector<std::optional<VerdictKind>>
      by_look;  // what each look says by itself; empty if it was not tested
};

// One metric and one arm: the looks of each cell, in the order given.
std::vector<Decision> decide_family(std::span<const std::vector<LookTest>> cells);

}  // namespace trainyard::reports
