// Planning values compared with published ones and with SciPy.
#include "reports/statistics/power_analysis.h"

#include <cmath>

#include <doctest/doctest.h>

namespace trainyard::reports {
namespace {

TEST_CASE("the power of two one-sided tests agrees with the published value of PowerTOST") {
  // sampleN.TOST(CV = 0.3): n = 40, power 0.815845 (2×2 crossover: SE = σ·√(2/n), ν = n − 2, bounds 0.80 –
  // 1.25)
  const double standard_error = std::sqrt(std::log(1 + 0.3 * 0.3)) * std::sqrt(2.0 / 40);
  CHECK(equivalence_power(std::log(0.95), std::log(1.25), standard_error, 38, 0.05) ==
        doctest::Approx(0.815845).epsilon(1e-5));
}

TEST_CASE("the power of a shift with a margin of zero is the power of the t test") {
  // R7. The far tail of the two-sided test is below 1e-7 here.
  CHECK(shift_power(2, 0, 1 / std::sqrt(5.0), 4, 0.05) == doctest::Approx(0.90888487).epsilon(1e-7));
}

// Expected values: scipy.integrate.quad over scipy.stats.norm and chi2, and scipy.stats.nct.
TEST_CASE("powers agree with SciPy at Holm's levels for six cells in the first look") {
  const double level = 0.04 / 6;
  const auto found = [&](int n, double alpha) {
    return equivalence_power(0, 0.5, 0.2 / std::sqrt(n), n - 1, alpha);
  };
  CHECK(found(3, level) == doctest::Approx(0.1590690866206632).epsilon(1e-9));
  CHECK(found(5, level) == doctest::Approx(0.7113845786777032).epsilon(1e-9));
  CHECK(found(10, level) == doctest::Approx(0.9999018129291534).epsilon(1e-9));
  CHECK(found(3, 0.04) == doctest::Approx(0.6664382370090534).epsilon(1e-9));
  CHECK(shift_power(1.2, 0.5, 0.4 / std::sqrt(5), 4, level) ==
        doctest::Approx(0.33536212538722765).epsilon(1e-9));
  CHECK(shift_power(0.12, std::log(1.05), 0.03 / std::sqrt(7), 6, 0.05) ==
        doctest::Approx(0.9991917272179727).epsilon(1e-9));
}

TEST_CASE("the number of seeds for a power of 0.8 agrees with SciPy") {
  CHECK(seeds_needed(0, 0.2, 0.5, 0.04 / 6) == 6);
  CHECK(seeds_needed(0.1, 0.4, 0.5, 0.04) == 9);
  CHECK(seeds_needed(1.2, 0.4, 0.5, 0.01) == 8);
  CHECK(seeds_needed(0.0198, 0.03, std::log(1.05), 0.05) == 9);
  CHECK_FALSE(seeds_needed(0.3, 5, 0.5, 0.05).has_value());
}

TEST_CASE("the least spread that agrees with an estimate is the lower end of its interval, as in SciPy") {
  // 2 * sqrt(4 / scipy.stats.chi2.ppf(0.975, 4)) and 1 * sqrt(9 / scipy.stats.chi2.ppf(0.975, 9))
  CHECK(lowest_spread(2, 4) == doctest::Approx(1.1982662782682818).epsilon(1e-9));
  CHECK(lowest_spread(1, 9) == doctest::Approx(0.6878352067489997).epsilon(1e-9));
}

// Expected values: scipy.optimize.brentq over the same powers.
TEST_CASE("the largest spread and the smallest effect of a plan agree with SciPy") {
  const auto five = outlook_of({5, true, 0.5, 0.04 / 6});
  REQUIRE(five.has_value());
  CHECK(five->widest_spread == doctest::Approx(0.1839845852600824).epsilon(1e-8));
  CHECK(five->smallest_effect == doctest::Approx(1.0384206027300669).epsilon(1e-8));
  const auto three = outlook_of({3, true, std::log(1.05), 0.04});
  REQUIRE(three.has_value());
  CHECK(three->widest_spread == doctest::Approx(0.01656141307316735).epsilon(1e-8));
  CHECK(three->smallest_effect == doctest::Approx(0.1092757703510605).epsilon(1e-8));
  const auto unpaired = outlook_of({10, false, 0.5, 0.05});
  REQUIRE(unpaired.has_value());
  CHECK(unpaired->widest_spread == doctest::Approx(0.36731195888570173).epsilon(1e-8));
  CHECK(unpaired->smallest_effect == doctest::Approx(0.9866695742174236).epsilon(1e-8));
  CHECK_FALSE(outlook_of({2, true, 0.5, 0.05}).has_value());
}

TEST_CASE("an accuracy of few samples is too coarse for a narrow margin") {
  CHECK(too_coarse(100, 0.5));  // steps of 1 point
  CHECK(too_coarse(399, 0.5));  // more than a quarter of a point
  CHECK_FALSE(too_coarse(400, 0.5));
  CHECK_FALSE(too_coarse(0, 0.5));
}

}  // namespace
}  // namespace trainyard::reports
