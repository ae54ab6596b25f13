// Reference cases R1 – R4 and R7 of docs/verdicts-and-statistics.md, and closed forms.
#include "reports/statistics/statistics.h"

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "reports/statistics/power_analysis.h"

namespace trainyard::reports {
namespace {

// Strict relative tolerance. An absolute part would accept errors in small values.
bool close(double actual, double expected, double tolerance = 1e-9) {
  return std::abs(actual - expected) <= tolerance * std::abs(expected);
}

const std::vector<double> sleep_a{.7, -1.6, -.2, -1.2, -.1, 3.4, 3.7, .8, 0, 2};
const std::vector<double> sleep_b{1.9, .8, 1.1, .1, -.1, 4.4, 5.5, 1.6, 4.6, 3.4};

std::vector<double> minus(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> difference;
  for (std::size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b[i]);
  return difference;
}

TEST_CASE("the paired t test reproduces Student's sleep data (R1)") {
  const Estimate estimate = paired_estimate(minus(sleep_a, sleep_b));
  CHECK(close(estimate.mean / estimate.standard_error, -4.062127683382037));
  CHECK(close(2 * three_sided_test(estimate, 0).worse, 0.00283289019738427));
  const Interval interval = confidence_interval(estimate, 0.95);
  CHECK(close(interval.low, -2.459885763254729));
  CHECK(close(interval.high, -0.700114236745271));
}

TEST_CASE("a mean has a compensated sum: a thousand tenths after 1e9 are not rounded one by one") {
  std::vector<double> values(1001, 0.1);
  values[0] = 1e9;
  CHECK(mean_of(values) == 1000000100.0 / 1001);
  CHECK(std::isnan(mean_of({})));
}

TEST_CASE("the Welch test reproduces Student's sleep data (R1)") {
  const Estimate estimate = welch_estimate(sleep_b, sleep_a);
  CHECK(close(estimate.mean / estimate.standard_error, -1.860813467486853));
  CHECK(close(estimate.freedom, 17.776473516178495));
  CHECK(close(2 * three_sided_test(estimate, 0).worse, 0.07939414018735823));
  const Interval interval = confidence_interval(estimate, 0.95);
  CHECK(close(interval.low, -3.365483230711636));
  CHECK(close(interval.high, 0.205483230711636));
}

TEST_CASE("the sleep data are equivalent within 2.5 and better by more than 0.5 (R2)") {
  const Estimate estimate = paired_estimate(minus(sleep_b, sleep_a));
  const ThreeSided wide = three_sided_test(estimate, 2.5);
  CHECK(close(wide.equivalent, 0.0211168602465));
  CHECK(wide.cell == wide.equivalent);
  const Interval interval = confidence_interval(estimate, 0.90);
  CHECK(close(interval.low, 0.866994732972));
  CHECK(close(interval.high, 2.293005267028));
  const ThreeSided narrow = three_sided_test(estimate, 0.5);
  CHECK(close(2 * narrow.better, 0.0215184867568));
  CHECK(narrow.cell == 2 * narrow.better);
}

TEST_CASE("a speed-up is the exponential of the mean log ratio (R3)") {
  const std::vector<double> a{100, 102, 98, 101, 99};
  const std::vector<double> b{55, 56.5, 54, 55.5, 54.5};
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(std::log(a[i] / b[i]));
  const Estimate estimate = paired_estimate(differences);
  CHECK(close(std::exp(estimate.mean), 1.8149208364954));
  const Interval interval = confidence_interval(estimate, 0.95);
  CHECK(close(std::exp(interval.low), 1.8078570899288));
  CHECK(close(std::exp(interval.high), 1.8220121828739));
  const ThreeSided p = three_sided_test(estimate, std::log(1.05));
  CHECK(2 * p.better < 0.05);
  CHECK(p.cell == 2 * p.better);
}

TEST_CASE("accuracies within half a point are equivalent (R4)") {
  const Estimate estimate = paired_estimate(std::vector<double>{-.10, .07, -.07, .03, -.10});
  const ThreeSided p = three_sided_test(estimate, 0.5);
  CHECK(close(p.equivalent, 9.5100107918e-5));
  CHECK(p.cell == p.equivalent);
}

TEST_CASE("Holm's correction steps down and never decreases (R7)") {
  const std::vector<double> adjusted = holm(std::vector<double>{.01, .02, .03, .04, .05});
  const std::vector<double> expected{.05, .08, .09, .09, .09};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(close(adjusted[i], expected[i]));
}

TEST_CASE("Holm's correction returns p-values in the given order") {
  const std::vector<double> adjusted = holm(std::vector<double>{.05, .01, .04, .02, .03});
  const std::vector<double> expected{.09, .05, .09, .08, .09};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(close(adjusted[i], expected[i]));
  CHECK(holm({}).empty());
}

TEST_CASE("the power of a t test is computed from the non-central t distribution (R7)") {
  CHECK(close(shift_power(2, 0, 1 / std::sqrt(5), 4, 0.05), 0.90888487, 1e-7));
}

TEST_CASE("differences are constant if their spread is rounding") {
  CHECK(is_constant(paired_estimate(std::vector<double>{1, 1 + 1e-15, 1}), 0.5));
  CHECK_FALSE(is_constant(paired_estimate(std::vector<double>{1, 1 + 1e-9, 1}), 0.5));
}

}  // namespace
}  // namespace trainyard::reports
