// From p-values to verdicts: levels of looks, families, and decided cells.
#include "reports/statistics/procedure.h"

#include <doctest/doctest.h>

namespace trainyard::reports {
namespace {

ThreeSided better(double cell) {
  return {cell / 2, 1, 1, cell};
}
ThreeSided worse(double cell) {
  return {1, cell / 2, 1, cell};
}
ThreeSided equal(double cell) {
  return {1, 1, cell, cell};
}

TEST_CASE("looks spend 0.8 α and then halves of the rest, at most α in total") {
  CHECK(level_of_look(0, 0.05, false) == doctest::Approx(0.04));
  CHECK(level_of_look(1, 0.05, false) == doctest::Approx(0.005));
  CHECK(level_of_look(2, 0.05, false) == doctest::Approx(0.0025));
  double spent = 0;
  for (std::size_t look = 0; look < 50; ++look) spent += level_of_look(look, 0.05, false);
  CHECK(spent == doctest::Approx(0.05));
  CHECK(level_of_look(0, 0.05, true) == 0.05);
  CHECK(level_of_look(1, 0.05, true) == 0);
}

TEST_CASE("the verdict follows the smallest of 2p₊, 2p₋ and p₌") {
  const std::vector<std::vector<LookTest>> cells{
      {{better(0.001), 0.04}}, {{worse(0.001), 0.04}}, {{equal(0.001), 0.04}}, {{equal(0.9), 0.04}}};
  const std::vector<Decision> decisions = decide_family(cells);
  CHECK(decisions[0].kind == VerdictKind::improves);
  CHECK(decisions[1].kind == VerdictKind::deteriorates);
  CHECK(decisions[2].kind == VerdictKind::no_change);
  CHECK(decisions[3].kind == VerdictKind::inconclusive);
}

TEST_CASE("Holm's level of a cell is α divided by the cells left when it passes or when Holm stops") {
  const std::vector<std::vector<LookTest>> cells{
      {{equal(0.5), 0.04}}, {{equal(0.001), 0.04}}, {{equal(0.03), 0.04}}};
  const std::vector<Decision> decisions = decide_family(cells);
  CHECK(decisions[1].holm_level == doctest::Approx(0.04 / 3));
  CHECK(decisions[2].holm_level == doctest::Approx(0.04 / 2));
  CHECK(decisions[0].holm_level == doctest::Approx(0.04 / 2));  // stopped earlier by 0.03 · 2
  CHECK(decisions[2].adjusted_p == doctest::Approx(0.06));
  CHECK(decisions[2].kind == VerdictKind::inconclusive);
}

TEST_CASE("an incomplete cell counts in its family, so that decisions beside it remain valid") {
  const std::vector<std::vector<LookTest>> beside_interim{{{equal(0.03), 0.04}}, {{std::nullopt, 0.04}}};
  CHECK(decide_family(beside_interim)[0].adjusted_p == doctest::Approx(0.06));
  CHECK(decide_family(beside_interim)[1].kind == VerdictKind::inconclusive);
  CHECK_FALSE(decide_family(beside_interim)[1].look.has_value());
}

TEST_CASE("the first deciding look gives the verdict, and a different later one is reported too") {
  const std::vector<std::vector<LookTest>> cells{{{better(0.01), 0.04}, {worse(0.0001), 0.005}}};
  const Decision decision = decide_family(cells).front();
  CHECK(decision.kind == VerdictKind::improves);
  CHECK(decision.look == 0);
  CHECK(decision.adjusted_p == 0.01);
  CHECK(decision.by_look[1] == VerdictKind::deteriorates);
}

TEST_CASE("the second look has a smaller part of α, so the same p-value may not decide") {
  const std::vector<std::vector<LookTest>> cells{{{equal(0.2), 0.04}, {equal(0.01), 0.005}}};
  CHECK(decide_family(cells).front().kind == VerdictKind::inconclusive);
  const std::vector<std::vector<LookTest>> clear{{{equal(0.2), 0.04}, {equal(0.004), 0.005}}};
  CHECK(decide_family(clear).front().kind == VerdictKind::no_change);
  CHECK(decide_family(clear).front().look == 1);
}

TEST_CASE("a decided cell is not in the family of the next look") {
  // 2 · 0.004 > 0.005, but the first cell was decided before.
  const std::vector<std::vector<LookTest>> cells{{{better(0.001), 0.04}},
                                                 {{equal(0.2), 0.04}, {equal(0.004), 0.005}}};
  CHECK(decide_family(cells)[1].kind == VerdictKind::no_change);
  const std::vector<std::vector<LookTest>> open{{{equal(0.3), 0.04}},
                                                {{equal(0.2), 0.04}, {equal(0.004), 0.005}}};
  CHECK(decide_family(open)[1].kind == VerdictKind::inconclusive);
}

}  // namespace
}  // namespace trainyard::reports
