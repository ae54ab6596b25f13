// Error rates of the procedure, from simulated sweeps with known truth. bench/README.md has the whole table,
// with 100,000 sweeps each. This is a short version with a fixed seed.
#include <doctest/doctest.h>

#include "bench/verdict_simulation.h"

namespace trainyard::bench {
namespace {

TEST_CASE("each verdict is wrong in at most 5 % of families, even with looks, and intervals cover 95 %") {
  constexpr std::int64_t sweeps = 1000;
  const double most = 0.05 + 3 * standard_error(0.05, sweeps);
  for (const Sweep& sweep : usual_sweeps()) {
    if (sweep.spread != 1.0) continue;
    const Rates rates = simulate(sweep, sweeps, 20261120);
    CAPTURE(sweep.name);
    CAPTURE(sweep.looks.size());
    CHECK(rates.false_improves <= most);
    CHECK(rates.false_deteriorates <= most);
    CHECK(rates.false_no_change <= most);
    CHECK(rates.covered >= 0.94 - 0.01);
    CHECK(rates.covered <= 0.96 + 0.01);
  }
}

TEST_CASE("with a spread of 0.4 δ and six cells, five seeds find NO CHANGE and three do not") {
  // The planning values of docs/verdicts-and-statistics.md: 20 %, 96 %, always.
  const std::vector<double> none(6, 0.0);
  CHECK(simulate({"", none, 0.4, {3}}, 2000, 7).no_change == doctest::Approx(0.20).epsilon(0.03));
  CHECK(simulate({"", none, 0.4, {5}}, 2000, 7).no_change == doctest::Approx(0.96).epsilon(0.02));
  CHECK(simulate({"", none, 0.4, {10}}, 2000, 7).no_change == doctest::Approx(1.0).epsilon(0.001));
}

TEST_CASE("repeated looks at the whole of α would be wrong too often") {
  // Optional stopping: each look at 5 %, from three seeds to ten.
  const std::vector<int> looks{3, 4, 5, 6, 7, 8, 9, 10};
  std::int64_t wrong = 0;
  constexpr std::int64_t sweeps = 2000;
  for (std::int64_t i = 0; i < sweeps; ++i) {
    // One cell at +δ, judged at every n by a look of its own.
    bool found = false;
    for (const int n : looks)
      found = found ||
              simulate({"", {1.0}, 1.0, {n}, 0.0625}, 1, static_cast<std::uint64_t>(i)).false_improves > 0;
    wrong += found ? 1 : 0;
  }
  CHECK(static_cast<double>(wrong) / static_cast<double>(sweeps) > 0.05);  // expected: 8.4 %
  CHECK(simulate({"", {1.0}, 1.0, looks}, sweeps, 1).false_improves <
        0.026 + 3 * standard_error(0.026, sweeps));
}

}  // namespace
}  // namespace trainyard::bench
