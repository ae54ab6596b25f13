// The expected values are from another program, with 128 nodes and 128 points: simulate.py of the design, whose
// boundaries also agree with 5·10⁷ simulated walks.
#include "reports/statistics/sequential_levels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <boost/math/distributions/students_t.hpp>
#include <doctest/doctest.h>

namespace trainyard::reports {
namespace {

double deviation(double actual, double expected) {
  return std::abs(actual - expected) / std::abs(expected);
}

double by_recursion(double nominal, Looks looks) {
  const std::vector<double> exits = exit_probabilities(nominal, looks);
  return std::accumulate(exits.begin(), exits.end(), 0.0);
}

// 2e-8, or half a unit of the last of eight printed digits if that is more.
double allowed_error(double value) {
  return std::max(2e-8 * value, 0.5 * std::pow(10, std::floor(std::log10(value)) - 7));
}

TEST_CASE("the probability of a crossing agrees with the table of the design") {
  const std::array<double, 7> nominal{0.1, 0.03, 0.01, 0.003, 0.001, 1e-4, 1e-6};
  struct Row {
    Looks looks;
    std::array<double, 7> expected;
  };
  const std::vector<Row> rows{
      {{3, 20},
       {0.31798011, 0.13246486, 0.055408520, 0.020135902, 0.0076954569, 0.00094680807, 1.2037580e-5}},
      {{3, 10},
       {0.24825319, 0.096804709, 0.038741759, 0.013547745, 0.0050270593, 0.00058739310, 6.8939966e-6}},
      {{4, 20},
       {0.29565034, 0.12045521, 0.049860406, 0.018054251, 0.0069068838, 0.00085615032, 1.1055597e-5}}};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < nominal.size(); ++i) {
      CAPTURE(row.looks.first);
      CAPTURE(row.looks.last);
      CAPTURE(nominal[i]);
      const double expected = row.expected[i];
      CHECK(std::abs(by_recursion(nominal[i], row.looks) - expected) <= allowed_error(expected));
      CHECK(deviation(crossing_probability(nominal[i], row.looks), expected) < (i == 0 ? 1e-6 : 1e-7));
    }
}

TEST_CASE("each look has its own part of the probability") {
  const std::vector<double> exits = exit_probabilities(0.01, {3, 6});
  const std::vector<double> expected{0.01, 0.0068162509, 0.0053050977, 0.0043500297};
  REQUIRE(exits.size() == expected.size());
  for (std::size_t i = 0; i < exits.size(); ++i) CHECK(std::abs(exits[i] - expected[i]) < 0.51e-10);
}

TEST_CASE("the boundaries of Student's t agree with the reference cases of the design") {
  struct Row {
    double level, nominal;
    std::array<double, 5> t;  // n = 3 … 7
  };
  const std::vector<Row> rows{
      {0.05, 0.0088240418, {7.4275048, 4.7556414, 3.8928411, 3.4805631, 3.2417496}},
      {0.025, 0.0038617423, {11.312700, 6.4010694, 4.9568369, 4.2989032, 3.9287898}},
      {0.0125, 0.0017326310, {16.943416, 8.4613365, 6.1885661, 5.2006174, 4.6605795}},
      {0.05 / 3, 0.0024102551, {14.350893, 7.5485943, 5.6543192, 4.8147799, 4.3503944}}};
  for (const Row& row : rows) {
    CAPTURE(row.level);
    const double nominal = nominal_level(row.level, {3, 20});
    CHECK(deviation(nominal, row.nominal) < 1e-7);
    for (std::size_t i = 0; i < row.t.size(); ++i) {
      const boost::math::students_t student(static_cast<double>(i) + 2);
      CHECK(deviation(quantile(boost::math::complement(student, nominal)), row.t[i]) < 1e-7);
    }
  }
}

TEST_CASE("with one look the probability and the level are the nominal p") {
  for (const double p : {0.0, 1e-12, 0.05, 0.7, 1.0}) {
    CHECK(crossing_probability(p, {5, 5}) == p);
    CHECK(nominal_level(p, {5, 5}) == p);
  }
}

TEST_CASE("the probability is 0 at 0, 1 above 0.4, increasing between, and at most looks times p") {
  const Looks looks{3, 5};
  CHECK(crossing_probability(0, looks) == 0);
  CHECK(crossing_probability(0.41, looks) == 1);
  double before = 0;
  for (int step = 3600; step >= 0; --step) {  // from 1e-16 on
    const double p = 0.4 * std::pow(1.01, -step);
    const double now = crossing_probability(p, looks);
    CHECK(now >= before);
    CHECK(now >= p);
    CHECK(now <= 3 * p * (1 + 1e-9));
    before = now;
  }
  CHECK(before < 1);
  CHECK(crossing_probability(1e-300, looks) == doctest::Approx(3e-300));
}

TEST_CASE("between its nodes the table agrees with the recursion") {
  for (const Looks looks : {Looks{3, 5}, Looks{3, 20}, Looks{8, 12}})
    for (int step = 0; step < 11; ++step) {
      const double p = 1.3e-10 * std::pow(8, step);
      CAPTURE(looks.last);
      CAPTURE(p);
      CHECK(deviation(crossing_probability(p, looks), by_recursion(p, looks)) < (p < 0.03 ? 1e-7 : 3e-6));
    }
}

TEST_CASE("the nominal level is the inverse of the probability") {
  for (const double level : {1e-12, 1e-8, 1e-4, 0.05 / 12, 0.2}) {
    const double nominal = nominal_level(level, {3, 5});
    CAPTURE(level);
    CHECK(crossing_probability(nominal, {3, 5}) == doctest::Approx(level).epsilon(1e-10));
    CHECK(nominal < level);
  }
  CHECK(nominal_level(0.9, {3, 5}) == doctest::Approx(0.4));
}

}  // namespace
}  // namespace trainyard::reports
