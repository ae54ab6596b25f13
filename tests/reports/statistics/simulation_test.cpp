// Error rates of the procedure, from simulated sweeps with known truth. docs/verdicts-and-statistics.md has the whole
// table, with 100,000 sweeps each. This is a short version with a fixed seed.
#include <doctest/doctest.h>

#include "bench/verdict_simulation.h"

namespace trainyard::bench {
namespace {

TEST_CASE("each verdict is wrong in at most 5 % of families, with one look and with many") {
  constexpr std::int64_t sweeps = 500;
  const double most = 0.05 + 3 * standard_error(0.05, sweeps);
  for (const Sweep& sweep : usual_sweeps()) {
    if (sweep.spread != 0.3 && sweep.spread != 1.0) continue;
    const Rates rates = simulate(sweep, sweeps, 20261127);
    CAPTURE(sweep.name);
    CAPTURE(sweep.looks.last);
    CHECK(rates.wrong_shift <= most);
    CHECK(rates.wrong_no_change <= most);
    CHECK(rates.covered >= 0.95 - 3 * standard_error(0.05, 6 * sweeps));
  }
}

// The design: mean pairs of a cell with six cells, from 20,000 to 100,000 families. Standard errors are below 0.01.
TEST_CASE("cells use as many pairs as the simulations of other code") {
  const auto pairs = [](double effect, double spread) {
    return simulate({"", std::vector(6, effect), spread, {3, 20}}, 500, 7).pairs;
  };
  CHECK(pairs(0, 0.1) == doctest::Approx(3.20).epsilon(0.02));
  CHECK(pairs(0, 0.3) == doctest::Approx(4.77).epsilon(0.02));
  CHECK(pairs(0, 0.7) == doctest::Approx(9.69).epsilon(0.02));
  CHECK(pairs(2, 0.3) == doctest::Approx(5.07).epsilon(0.02));
  CHECK(pairs(5, 0.5) == doctest::Approx(3.77).epsilon(0.02));
}

TEST_CASE("with a spread of 0.4 δ and six cells, five seeds find NO CHANGE and three do not") {
  // The planning values of docs/verdicts-and-statistics.md: 20 %, 96 %, always.
  const auto found = [](int pairs) {
    return simulate({"", std::vector(6, 0.0), 0.4, {pairs, pairs}}, 2000, 7).decided;
  };
  CHECK(found(3) == doctest::Approx(0.20).epsilon(0.15));
  CHECK(found(5) == doctest::Approx(0.97).epsilon(0.02));
  CHECK(found(10) == doctest::Approx(1.0).epsilon(0.001));
}

}  // namespace
}  // namespace trainyard::bench
