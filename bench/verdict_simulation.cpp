#include "bench/verdict_simulation.h"

#include <cmath>
#include <random>

#include "reports/statistics/procedure.h"
#include "reports/statistics/statistics.h"

namespace trainyard::bench {

namespace {

using reports::LookTest;
using reports::VerdictKind;

constexpr double margin = 1;  // all values are in units of δ

struct Cell {
  double effect = 0;
  std::vector<double> differences;
};

struct Wrong {
  bool improves = false;
  bool deteriorates = false;
  bool no_change = false;
};

void mark(const Cell& cell, VerdictKind word, Wrong& wrong) {
  wrong.improves = wrong.improves || (word == VerdictKind::improves && cell.effect <= margin);
  wrong.deteriorates = wrong.deteriorates || (word == VerdictKind::deteriorates && cell.effect >= -margin);
  wrong.no_change = wrong.no_change || (word == VerdictKind::no_change && std::abs(cell.effect) >= margin);
}

class Simulation {
 public:
  Simulation(const Sweep& sweep, std::uint64_t seed) : sweep_(sweep), random_(seed) {
    reports::Estimate unit;
    unit.standard_error = 1;
    unit.freedom = sweep.looks.front() - 1;
    half_width_ =
        reports::confidence_interval(unit, 0.95).high;  // computed once, because the quantile is slow
  }

  void run_one() {
    std::vector<Cell> cells;
    for (const double effect : sweep_.effects) cells.push_back({effect, {}});
    std::vector<std::vector<LookTest>> tests(cells.size());
    std::vector<reports::Decision> decisions(cells.size());
    for (std::size_t look = 0; look < sweep_.looks.size(); ++look) {
      for (std::size_t i = 0; i < cells.size(); ++i)
        if (decisions[i].kind == VerdictKind::inconclusive) add_look(cells[i], look, tests[i]);
      decisions = reports::decide_family(tests);
    }
    count(cells, decisions);
  }

  Rates result() const {
    const auto sweeps = static_cast<double>(sweeps_);
    const auto all = sweeps * static_cast<double>(sweep_.effects.size());
    return {sweeps_,
            improves_ / sweeps,
            deteriorates_ / sweeps,
            wrong_no_change_ / sweeps,
            covered_ / all,
            decided_ / all,
            inside_ > 0 ? found_ / inside_ : 0};
  }

 private:
  void add_look(Cell& cell, std::size_t look, std::vector<LookTest>& tests) {
    std::normal_distribution<double> difference(cell.effect, sweep_.spread);
    while (cell.differences.size() < static_cast<std::size_t>(sweep_.looks[look]))
      cell.differences.push_back(difference(random_));
    const reports::Estimate estimate = reports::paired_estimate(cell.differences);
    const bool only = sweep_.looks.size() == 1;
    tests.push_back(
        {reports::three_sided_test(estimate, margin), reports::level_of_look(look, sweep_.alpha, false)});
    if (look > 0 && !only) return;
    covered_ += std::abs(estimate.mean - cell.effect) <= half_width_ * estimate.standard_error ? 1 : 0;
  }

  void count(const std::vector<Cell>& cells, const std::vector<reports::Decision>& decisions) {
    Wrong wrong;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const VerdictKind word = decisions[i].kind;
      mark(cells[i], word, wrong);
      decided_ += word != VerdictKind::inconclusive ? 1 : 0;
      if (std::abs(cells[i].effect) >= margin) continue;
      inside_ += 1;
      found_ += word == VerdictKind::no_change ? 1 : 0;
    }
    improves_ += wrong.improves ? 1 : 0;
    deteriorates_ += wrong.deteriorates ? 1 : 0;
    wrong_no_change_ += wrong.no_change ? 1 : 0;
    ++sweeps_;
  }

  const Sweep& sweep_;
  std::mt19937_64 random_;
  double half_width_ = 0;  // of a 95 % interval at the first analysis, in standard errors
  std::int64_t sweeps_ = 0;
  double improves_ = 0, deteriorates_ = 0, wrong_no_change_ = 0, covered_ = 0, decided_ = 0, inside_ = 0,
         found_ = 0;
};

}  // namespace

double standard_error(double rate, std::int64_t trials) {
  return std::sqrt(rate * (1 - rate) / static_cast<double>(trials));
}

Rates simulate(const Sweep& sweep, std::int64_t sweeps, std::uint64_t seed) {
  Simulation simulation(sweep, seed);
  for (std::int64_t i = 0; i < sweeps; ++i) simulation.run_one();
  return simulation.result();
}

std::vector<Sweep> usual_sweeps() {
  const std::vector<std::pair<std::string, std::vector<double>>> truths{
      {"all 0", {0, 0, 0, 0, 0, 0}},
      {"all +δ", {1, 1, 1, 1, 1, 1}},
      {"all −δ", {-1, -1, -1, -1, -1, -1}},
      {"mixed: 0, 0, +δ, −δ, +3δ, −3δ", {0, 0, 1, -1, 3, -3}}};
  std::vector<Sweep> sweeps;
  for (const auto& [name, effects] : truths)
    for (const double spread : {0.4, 1.0})
      for (const std::vector<int>& looks : {std::vector{3}, {5}, {10}, {3, 5, 10}, {5, 10, 20}})
        sweeps.push_back({name, effects, spread, looks, 0.05});
  return sweeps;
}

}  // namespace trainyard::bench
