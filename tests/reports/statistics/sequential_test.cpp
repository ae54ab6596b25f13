// Reference cases of the design of sequential verdicts, and values of SciPy. sequential_levels_test.cpp has the
// tests of the probabilities.
#include "reports/statistics/sequential.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace trainyard::reports {
namespace {

using Cells = std::vector<std::vector<double>>;

constexpr Looks usual{3, 20};
const std::vector<double> sleep_differences{1.2, 2.4, 1.3, 1.3, 0, 1, 1.8, .8, 4.6, 1.4};

double off_by(double actual, double expected) {
  return std::abs(actual - expected) / std::max(std::abs(expected), 1e-300);
}

// The decisions on the first `n` pairs of each cell, with margin 0.5.
std::vector<SequentialDecision> decisions_at(const Cells& cells, Looks looks, std::size_t n) {
  std::vector<SequentialCell> tested;
  for (const std::vector<double>& cell : cells)
    tested.push_back(
        {sequential_p(std::span(cell).first(std::min(n, cell.size())), 0.5, looks), looks.first});
  return decide_family(tested, 0.05);
}

// One cell after n pairs. t: against the upper and the lower margin; 0 if there is no t test.
struct ReferenceLook {
  std::size_t cell, n;
  double t_above, t_below, twice_better, equivalent, twice_worse, adjusted;
  VerdictKind kind;
};
struct ReferenceCase {
  std::string name;
  Cells cells;
  std::vector<ReferenceLook> rows;
};

TEST_CASE("p-values and words agree with the reference cases of the design at every look") {
  const std::vector<ReferenceCase> cases{
      {"one cell",
       {{.31, -.22, .14, .05, -.17}},
       {
           {0, 3, -2.7094971, 3.6908898, 2, 0.21318419, 2, 0.21318419, VerdictKind::inconclusive},
           {0, 4, -3.885084, 5.149995, 2, 0.077395683, 2, 0.077395683, VerdictKind::inconclusive},
           {0, 5, -4.8649037, 5.3127191, 2, 0.026444752, 2, 0.026444752, VerdictKind::no_change},
       }},
      {"three cells",
       {{.10, -.12, .04, .21, -.05},
        {1.9, 1.2, 2.3, 1.1, 1.7, 2.0},
        {-.61, -1.44, -.35, -1.21, -.86, -1.32, -.55, -1.10, -.74, -1.28}},
       {
           {0, 3, -7.5135616, 7.7166309, 2, 0.049084029, 2, 0.14725209, VerdictKind::inconclusive},
           {1, 3, 4.0441116, 7.1549667, 0.25144753, 1, 2, 0.50289506, VerdictKind::inconclusive},
           {2, 3, -3.9551637, -0.91273009, 2, 1, 1.0837041, 1, VerdictKind::inconclusive},
           {0, 4, -6.4275164, 8.0979444, 2, 0.024751815, 2, 0.074255445, VerdictKind::inconclusive},
           {1, 4, 3.921702, 7.4076594, 0.15179527, 1, 2, 0.30359054, VerdictKind::inconclusive},
           {2, 4, -5.5213576, -1.5845607, 2, 1, 0.66009346, 0.66009346, VerdictKind::inconclusive},
           {0, 5, -8.0698703, 9.3220916, 2, 0.0051673178, 2, 0.015501953, VerdictKind::no_change},
           {1, 5, 5.1187511, 9.6088837, 0.04536202, 1, 2, 0.09072404, VerdictKind::inconclusive},
           {2, 5, -7.0782399, -2.0005929, 2, 1, 0.43329015, 0.43329015, VerdictKind::inconclusive},
           {1, 6, 6.2667956, 11.489125, 0.012036699, 1, 2, 0.024073398, VerdictKind::improves},
           {2, 6, -8.3343186, -2.6453639, 2, 1, 0.21458088, 0.21458088, VerdictKind::inconclusive},
           {2, 7, -8.7882835, -2.5364558, 2, 1, 0.2094704, 0.2094704, VerdictKind::inconclusive},
           {2, 8, -10.168071, -3.0575319, 2, 1, 0.10343287, 0.10343287, VerdictKind::inconclusive},
           {2, 9, -11.198242, -3.2499629, 2, 1, 0.07106238, 0.07106238, VerdictKind::inconclusive},
           {2, 10, -12.203316, -3.7639551, 2, 1, 0.031144634, 0.031144634, VerdictKind::deteriorates},
       }},
      {"two cells, the first decided late by its first four pairs",
       {{.19, -.11, .21, .04, .70, -.35, .42}, {-.90, -1.45, -.70, -1.30, -1.62, -1.05, -1.21}},
       {
           {0, 3, -3.8971476, 5.7652018, 2, 0.13243058, 2, 0.26486117, VerdictKind::inconclusive},
           {1, 3, -6.7639767, -2.3042119, 2, 1, 0.51507805, 0.51507805, VerdictKind::inconclusive},
           {0, 4, -5.6010002, 7.8145692, 2, 0.034362576, 2, 0.068725152, VerdictKind::inconclusive},
           {1, 4, -9.14166, -3.383134, 2, 1, 0.20464229, 0.20464229, VerdictKind::inconclusive},
           {0, 5, -2.1565243, 5.1785925, 2, 0.034362576, 2, 0.068725152, VerdictKind::inconclusive},
           {1, 5, -9.8735654, -4.0450144, 2, 1, 0.090023192, 0.090023192, VerdictKind::inconclusive},
           {0, 6, -2.6696664, 4.2346432, 2, 0.034362576, 2, 0.068725152, VerdictKind::inconclusive},
           {1, 6, -11.750079, -4.7141035, 2, 1, 0.036009697, 0.068725152, VerdictKind::inconclusive},
           {0, 7, -2.6370973, 5.0544364, 2, 0.034362576, 2, 0.034362576, VerdictKind::no_change},
           {1, 7, -13.934694, -5.6190199, 2, 1, 0.010884413, 0.021768825, VerdictKind::deteriorates},
       }},
      {"two cells, the first constant",
       {{0, 0, 0, 0, 0}, {.12, -.05, .33, .02, -.21}},
       {
           {0, 3, 0, 0, 2, 0.125, 2, 0.25, VerdictKind::inconclusive},
           {1, 3, -3.3363985, 5.7628701, 2, 0.16362207, 2, 0.25, VerdictKind::inconclusive},
           {0, 4, 0, 0, 2, 0.0625, 2, 0.099072757, VerdictKind::inconclusive},
           {1, 4, -4.7754702, 7.3143278, 2, 0.049536378, 2, 0.099072757, VerdictKind::inconclusive},
           {0, 5, 0, 0, 2, 0.03125, 2, 0.045951669, VerdictKind::no_change},
           {1, 5, -5.097076, 6.0319108, 2, 0.022975835, 2, 0.045951669, VerdictKind::no_change},
       }},
      {"Student's sleep data",
       {{1.2, 2.4, 1.3, 1.3, 0, 1, 1.8, .8, 4.6, 1.4}},
       {
           {0, 3, 2.9481739, 5.5495038, 0.3840455, 1, 2, 0.3840455, VerdictKind::inconclusive},
           {0, 4, 3.6931254, 7.2103877, 0.17180088, 1, 2, 0.17180088, VerdictKind::inconclusive},
           {0, 5, 1.9460212, 4.5757796, 0.17180088, 1, 2, 0.17180088, VerdictKind::inconclusive},
           {0, 6, 2.236068, 5.4304508, 0.17180088, 1, 2, 0.17180088, VerdictKind::inconclusive},
           {0, 7, 2.8251602, 6.4208187, 0.15449784, 1, 2, 0.15449784, VerdictKind::inconclusive},
           {0, 8, 2.9188246, 6.9447895, 0.12145535, 1, 2, 0.12145535, VerdictKind::inconclusive},
           {0, 9, 2.5328475, 4.8354362, 0.12145535, 1, 2, 0.12145535, VerdictKind::inconclusive},
           {0, 10, 2.7766442, 5.3476111, 0.11764403, 1, 2, 0.11764403, VerdictKind::inconclusive},
       }},
  };
  for (const ReferenceCase& one : cases)
    for (const ReferenceLook& row : one.rows) {
      CAPTURE(one.name);
      CAPTURE(row.cell);
      CAPTURE(row.n);
      const SequentialDecision decision = decisions_at(one.cells, usual, row.n)[row.cell];
      const Estimate estimate = paired_estimate(std::span(one.cells[row.cell]).first(row.n));
      if (row.t_above != 0) {
        CHECK(off_by((estimate.mean - 0.5) / estimate.standard_error, row.t_above) < 1e-6);
        CHECK(off_by((estimate.mean + 0.5) / estimate.standard_error, row.t_below) < 1e-6);
      }
      CHECK(off_by(2 * decision.p.better, row.twice_better) < 1e-6);
      CHECK(off_by(decision.p.equivalent, row.equivalent) < 1e-6);
      CHECK(off_by(2 * decision.p.worse, row.twice_worse) < 1e-6);
      CHECK(off_by(decision.adjusted_p, row.adjusted) < 1e-6);
      CHECK(decision.kind == row.kind);
      CHECK(decision.n == static_cast<int>(row.n));
    }
}

TEST_CASE("a word that another cell's word made possible names the pairs that earned it") {
  const Cells cells{{.19, -.11, .21, .04, .70, -.35, .42}, {-.90, -1.45, -.70, -1.30, -1.62, -1.05, -1.21}};
  const std::vector<SequentialDecision> decisions = decisions_at(cells, usual, 20);
  CHECK(decisions[0].n == 7);
  CHECK(decisions[0].earned == 4);
  CHECK(decisions[0].holm_level == 0.05);
  CHECK(decisions[1].n == 7);
  CHECK(decisions[1].earned == 7);
  CHECK(decisions[1].holm_level == 0.025);
}

TEST_CASE("a word is final, and pairs after it do not count") {
  const Cells cells{{.31, -.22, .14, .05, -.17, 900, 5000}};
  const SequentialDecision decision = decisions_at(cells, usual, 20).front();
  CHECK(decision.kind == VerdictKind::no_change);
  CHECK(decision.n == 5);
  CHECK(off_by(decision.adjusted_p, 0.026444752) < 1e-6);
}

TEST_CASE("a look at a value that is not finite is not a test, and the cell keeps its p") {
  const double lost = std::numeric_limits<double>::quiet_NaN();
  const std::vector<ThreeSided> p = sequential_p(std::vector<double>{.31, -.22, .14, lost, .05}, 0.5, usual);
  REQUIRE(p.size() == 3);
  CHECK(off_by(p[0].cell, 0.21318419) < 1e-6);
  CHECK(p[2].cell == p[0].cell);
  CHECK(sequential_p(std::vector<double>{lost, 0, 0, 0}, 0.5, usual).back().cell == 1);
  CHECK(sequential_p(std::vector<double>{0, 0}, 0.5, usual).empty());
}

TEST_CASE("a cell without a look counts in its family") {
  const Cells alone{{.31, -.22, .14, .05, -.17}};
  const Cells beside{alone[0], {}};
  CHECK(decisions_at(beside, usual, 5)[0].adjusted_p == 2 * decisions_at(alone, usual, 5)[0].adjusted_p);
  CHECK(decisions_at(beside, usual, 5)[0].kind == VerdictKind::inconclusive);
  CHECK(decisions_at(beside, usual, 5)[1].n == 0);
}

TEST_CASE(
    "constant differences need 5 pairs for NO CHANGE and 6 for a shift; on the margin there is no word") {
  for (const Looks looks : {usual, Looks{5, 5}, Looks{6, 6}}) {
    const auto n_of = [&](double value) {
      const SequentialDecision decision = decisions_at({std::vector<double>(20, value)}, looks, 20).front();
      return is_decided(decision.kind) ? decision.n : 0;
    };
    CAPTURE(looks.last);
    CHECK(n_of(0.1) == std::max(5, looks.first));
    CHECK(n_of(-0.6) == (looks.last >= 6 ? 6 : 0));
    CHECK(n_of(0.6) == (looks.last >= 6 ? 6 : 0));
    CHECK(n_of(0.5) == 0);
  }
  CHECK(sequential_p(std::vector<double>(4, 0), 0, usual).back().cell == 1);
}

TEST_CASE("with one look the test is the fixed one of three_sided_test and holm") {
  std::mt19937_64 random(20261127);
  std::normal_distribution<double> normal;
  const auto choice = [&](int number) { return std::uniform_int_distribution<int>(0, number - 1)(random); };
  for (int round = 0; round < 200; ++round) {
    const int n = 3 + choice(10);
    std::vector<SequentialCell> cells;
    std::vector<double> p;
    for (int cell = 0; cell <= choice(6); ++cell) {
      std::vector<double> differences(static_cast<std::size_t>(n));
      const double mean = 0.5 * (choice(7) - 3);
      const double spread = 0.1 + 0.2 * choice(4);
      for (double& difference : differences) difference = mean + spread * normal(random);
      cells.push_back({sequential_p(differences, 0.5, {n, n}), n});
      p.push_back(three_sided_test(paired_estimate(differences), 0.5).cell);
    }
    const std::vector<SequentialDecision> decisions = decide_family(cells, 0.05);
    const std::vector<double> adjusted = holm(p);
    for (std::size_t cell = 0; cell < cells.size(); ++cell) {
      CHECK(is_decided(decisions[cell].kind) == (adjusted[cell] <= 0.05));
      CHECK(decisions[cell].adjusted_p == adjusted[cell]);
      CHECK(decisions[cell].n == n);
      CHECK(decisions[cell].earned == n);
    }
  }
}

struct Expected {
  VerdictKind kind;
  int n;            // pairs at the deciding look, else at the cell's last look
  double adjusted;  // there, else at the end of the family
};
struct JudgedFamily {
  Looks looks;
  Cells cells;
  std::vector<Expected> expected;
};

// Random effects, spreads and numbers of pairs. The expected values are those of `judge` in simulate.py of the
// design with 128 nodes and 64 points, margin 0.5, α = 0.05.
TEST_CASE("random families get the words and p-values of the reference program") {
  const std::vector<JudgedFamily> families{
      {{3, 20},
       {{0.22, 0.31, 0.21, 0.33},
        {0.36, 0.45, 0.41, 0.81, 0.58, 0.48, 0.5, 0.29, 1.07, 0.52, 0.9, 0.56, 0.93, 0.55},
        {-0.58, -0.93, -1.19, -1.2, -1.36, -1.22, -0.94},
        {-1.04, -1.03, -0.91, -0.99, -0.96, -0.98, -0.94, -1.08, -0.91, -0.9, -1.16, -1.05}},
       {{VerdictKind::no_change, 4, 0.049402806},
        {VerdictKind::inconclusive, 14, 0.1485737},
        {VerdictKind::deteriorates, 7, 0.032047236},
        {VerdictKind::deteriorates, 4, 0.016647595}}},
      {{3, 10},
       {{1.03, 0.98, 1.02, 1, 1.05, 1.03, 0.99, 0.95, 0.97}},
       {{VerdictKind::improves, 3, 0.0047977421}}},
      {{4, 20},
       {{1.33, 1.14, 0.39, 0.32, -0.47, 0.54, 1.25}, {1.58, 1.55, 1.73, 1.16, 1.57, 1.68, 1.37}},
       {{VerdictKind::inconclusive, 7, 0.84193302}, {VerdictKind::improves, 4, 0.04754348}}},
      {{3, 20},
       {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {1.06, 0.91, 1.05, 1.02, 1.07, 1},
        {0.89, 1.24, 0.63, 0.99, 0.96, 1.07},
        {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        {0.4, 0.25, 0.19, 0.15, 0.38, 0.54, 0.17, 0.61, 0.16, 0.07, 0.34, 0.18, 0.17}},
       {{VerdictKind::no_change, 7, 0.03125},
        {VerdictKind::improves, 4, 0.028597099},
        {VerdictKind::improves, 7, 0.046875},
        {VerdictKind::improves, 7, 0.046875},
        {VerdictKind::no_change, 7, 0.046875}}},
      {{3, 10},
       {{0.56, 0.56, 0.51, 0.41, 0.72},
        {1.43, 1.5, 1.45, 1.38, 1.46, 1.71, 1.53, 1.62},
        {1.05, 1.03, 0.99, 1.03, 1.01, 0.98, 0.89},
        {0.99, 1.07, 1.11, 0.99, 0.71, 1.13},
        {0, 0, 0, 0, 0, 0, 0}},
       {{VerdictKind::inconclusive, 5, 0.33935103},
        {VerdictKind::improves, 3, 0.013139332},
        {VerdictKind::improves, 3, 0.023872527},
        {VerdictKind::improves, 4, 0.010605153},
        {VerdictKind::no_change, 6, 0.03125}}},
      {{4, 20},
       {{-0.36, 0.08, 0.2, 0.24, 0.57, 0.59, 0.35, 0.66},
        {0.6, 0.5, 0.43, 0.41, 0.7, 0.57, 0.51, 0.46, 0.43},
        {1, 1, 1, 1, 1}},
       {{VerdictKind::inconclusive, 8, 0.18974831},
        {VerdictKind::inconclusive, 9, 0.68992143},
        {VerdictKind::inconclusive, 5, 0.1875}}},
      {{3, 20},
       {{-0.54, 0.78}, {1.18, 1.72, 1.34, 0.66, 1.23, 1.16, 0.93, 1.48, 0.96, 0.75}},
       {{VerdictKind::inconclusive, 0, 1}, {VerdictKind::improves, 7, 0.025938161}}},
      {{3, 10},
       {{-0.03, -0.19, -0.13, 0.02, -0.33, 0.12, -0.18, -0.06, -0.13, -0.03, -0.13},
        {-0.02, 0.29, -0.13, -0.69, -0.48}},
       {{VerdictKind::no_change, 4, 0.014989596}, {VerdictKind::inconclusive, 5, 0.082128532}}},
      {{4, 20},
       {{0.04, 0.03, -0.4, -0.14, -0.12, 0.33, 0.18, -0.2, -0.06, -0.22}},
       {{VerdictKind::no_change, 5, 0.02475207}}},
      {{3, 20},
       {{0.43, 0.67, 0.33}, {1, 1, 1, 1, 1, 1}, {1, 0.84, 1.06, 0.59, 1.33, 0.89, 0.89, 0.43, 1.33}, {0, 0}},
       {{VerdictKind::inconclusive, 3, 1},
        {VerdictKind::inconclusive, 6, 0.09375},
        {VerdictKind::inconclusive, 9, 0.063304384},
        {VerdictKind::inconclusive, 0, 1}}},
      {{3, 10},
       {{0.55, 0.52, 0.7, 1.28}, {0.11, 0.56, 0.12, 0.01, 0.61, -0.23, -0.44, 0.55, 0, 1.07, -0.08, 0.55}},
       {{VerdictKind::inconclusive, 4, 0.5590985}, {VerdictKind::inconclusive, 10, 0.075423014}}},
      {{4, 20},
       {{-0.54, -1.68, -0.87, -1.55, -0.73, -1.26, -1.11, -1.3, -1.3, -0.61},
        {1.45, 1.36, 1.55, 1.32, 1.33, 1.28, 1.57, 1.53, 1.48, 1.44, 1.39},
        {-1.12, -0.93, -1.07, -1.05, -0.8, -1.16, -1.09, -0.87},
        {0.57, -0.2, 0.43, 0.14},
        {1.49, 1.59, 1.52, 1.62, 1.5, 1.54, 1.56, 1.54, 1.44, 1.49, 1.6, 1.44, 1.46, 1.52}},
       {{VerdictKind::deteriorates, 8, 0.037427366},
        {VerdictKind::improves, 4, 0.012205414},
        {VerdictKind::deteriorates, 4, 0.019991174},
        {VerdictKind::inconclusive, 4, 0.31391821},
        {VerdictKind::improves, 4, 0.0024104055}}},
  };
  for (std::size_t i = 0; i < families.size(); ++i) {
    const JudgedFamily& family = families[i];
    const std::vector<SequentialDecision> decisions = decisions_at(family.cells, family.looks, 20);
    for (std::size_t cell = 0; cell < decisions.size(); ++cell) {
      CAPTURE(i);
      CAPTURE(cell);
      CHECK(decisions[cell].kind == family.expected[cell].kind);
      const auto own = static_cast<int>(family.cells[cell].size());
      CHECK(decisions[cell].n == std::min(family.expected[cell].n, own));
      CHECK(off_by(decisions[cell].adjusted_p, family.expected[cell].adjusted) < 1e-6);
    }
  }
}

// m, h = d.mean(), stats.t.isf(0.0038617423, 9) * stats.sem(d); m - h, m + h
TEST_CASE("a repeated interval has the boundary of the looks in place of the usual quantile") {
  const Interval interval = repeated_interval(paired_estimate(sleep_differences), 0.95, usual);
  CHECK(off_by(interval.low, 0.2528208664) < 1e-6);
  CHECK(off_by(interval.high, 2.907179134) < 1e-6);
  const Interval fixed = repeated_interval(paired_estimate(sleep_differences), 0.95, {10, 10});
  CHECK(off_by(fixed.low, confidence_interval(paired_estimate(sleep_differences), 0.95).low) < 1e-12);
  CHECK(repeated_interval(paired_estimate(std::vector<double>{1, 1, 1}), 0.95, usual).high == 1);
}

// n, m, s = len(x), np.mean(x), np.std(x, ddof=1); k, e = s*np.sqrt((20-n)/(20*n)), s/np.sqrt(20)
// F = lambda a: stats.t.cdf((a - m)/k, n - 1); c1, c2 = stats.t.isf([0.0088240418, 0.0038617423], 19)
// h = 0.5 - c1*e; 1 - F(0.5 + c2*e) + F(-0.5 - c2*e) + (F(h) - F(-h) if h > 0 else 0)
TEST_CASE("a cell is hopeless if the last look has less than 5 % power, given the data") {
  const auto estimate = [](std::vector<double> differences) { return paired_estimate(differences); };
  const auto power = [](const Estimate& data) { return power_if_continued(data, 0.5, usual, 0.05); };
  const Estimate near_margin = estimate({1.9, -.4, .8, 1.2, -1.1, .3});
  CHECK(off_by(power(estimate({.6, .1, .9, .3, .7})), 0.18210113) < 1e-6);
  CHECK(off_by(power(estimate({.31, -.22, .14, .05, -.17})), 0.98941918) < 1e-6);
  CHECK(off_by(power(estimate({-1.2, -.9, -.3, -1.1, -.6, -.8})), 0.78601583) < 1e-6);
  CHECK(off_by(power(near_margin), 0.048982324) < 1e-6);
  CHECK(hopeless(near_margin, 0.5, usual, 0.05));
  CHECK_FALSE(hopeless(near_margin, 0.5, {3, 6}, 0.05));  // was the last look
  CHECK_FALSE(hopeless(estimate({.6, .1, .9, .3, .7}), 0.5, usual, 0.05));
  CHECK_FALSE(hopeless(estimate({1.9, -.4, .8, 1.2}), 0.5, usual, 0.05));  // below five pairs
  CHECK_FALSE(hopeless(estimate({.5, .5, .5, .5, .5}), 0.5, usual, 0.05));
}

// n, c = len(d), d - d.mean(); r = (np.diff(d)**2).sum()/(c**2).sum(); (2 - r)/np.sqrt(4*(n-2)/(n*n-1))
// abs(stats.skew(d))/np.sqrt(6*(n-2)/((n+1)*(n+3)))
TEST_CASE("diagnostics agree with SciPy and have the limits of the design") {
  const std::vector<double> rising{1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(off_by(order_diagnostic(sleep_differences)->score, -0.5720061229) < 1e-9);
  CHECK(off_by(order_diagnostic(rising)->score, 2.970339487) < 1e-9);
  CHECK(order_diagnostic(rising)->alarm());
  CHECK_FALSE(order_diagnostic(sleep_differences)->alarm());
  CHECK(off_by(skewness_diagnostic(sleep_differences)->score, 2.540670497) < 1e-9);
  CHECK(skewness_diagnostic(sleep_differences)->alarm());
  CHECK(skewness_diagnostic(rising)->score == doctest::Approx(0));
  std::vector<double> differences{0, 1, 0, 1};
  CHECK_FALSE(order_diagnostic(differences).has_value());
  CHECK_FALSE(order_diagnostic(std::vector<double>(9, 0.0)).has_value());
  CHECK_FALSE(skewness_diagnostic(std::vector<double>(9, 0.1)).has_value());
  while (differences.size() < 30) {
    differences.push_back(static_cast<double>(differences.size() % 2));
    const std::size_t n = differences.size();
    const double limit = order_diagnostic(differences)->limit;
    if (n == 5) CHECK(limit == 2.07);
    if (n == 10) CHECK(limit == doctest::Approx(2.20));
    if (n == 11) CHECK(limit == doctest::Approx(2.21));
    if (n >= 20) CHECK(limit == 2.25);
    CHECK(skewness_diagnostic(differences).has_value() == (n >= 8));
    if (n == 14) CHECK(skewness_diagnostic(differences)->limit == doctest::Approx(2.435));
  }
}

}  // namespace
}  // namespace trainyard::reports
