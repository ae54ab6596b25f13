#include "bench/verdict_simulation.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <span>

#include "reports/statistics/sequential.h"
#include "reports/statistics/statistics.h"

namespace trainyard::bench {

namespace {

using reports::SequentialCell;
using reports::SequentialDecision;
using reports::VerdictKind;

constexpr double margin = 1;  // all values are in units of δ

bool is_wrong_shift(double effect, VerdictKind word) {
  return (word == VerdictKind::improves && effect <= margin) ||
         (word == VerdictKind::deteriorates && effect >= -margin);
}

bool is_wrong_no_change(double effect, VerdictKind word) {
  return word == VerdictKind::no_change && std::abs(effect) >= margin;
}

class Simulation {
 public:
  Simulation(const Sweep& sweep, std::uint64_t seed) : sweep_(sweep), random_(seed) {}

  void run_one() {
    std::vector<std::vector<double>> differences;
    for (const double effect : sweep_.effects) {
      std::normal_distribution<double> difference(effect, sweep_.spread);
      std::vector<double>& cell = differences.emplace_back(static_cast<std::size_t>(sweep_.looks.last));
      std::ranges::generate(cell, [&] { return difference(random_); });
    }
    count(differences, decided(differences));
  }

  Rates result() const {
    const auto sweeps = static_cast<double>(sweeps_);
    const auto cells = sweeps * static_cast<double>(sweep_.effects.size());
    return {sweeps_,          wrong_shift_ / sweeps, wrong_no_change_ / sweeps,
            decided_ / cells, pairs_ / cells,        covered_ / cells};
  }

 private:
  // The looks after a word do not count, so they are computed only for cells that need them.
  std::vector<SequentialDecision> decided(const std::vector<std::vector<double>>& differences) const {
    std::vector<SequentialCell> cells(differences.size(), SequentialCell{{}, sweep_.looks.first});
    std::vector<SequentialDecision> decisions(differences.size());
    for (int pairs = sweep_.looks.first;; pairs = std::min(2 * pairs, sweep_.looks.last)) {
      for (std::size_t i = 0; i < cells.size(); ++i)
        if (!is_decided(decisions[i].kind))
          cells[i].p = reports::sequential_p(std::span(differences[i]).first(static_cast<std::size_t>(pairs)),
                                             margin, sweep_.looks);
      decisions = reports::decide_family(cells, sweep_.alpha);
      if (pairs == sweep_.looks.last) return decisions;
    }
  }

  void count(const std::vector<std::vector<double>>& differences,
             const std::vector<SequentialDecision>& decisions) {
    bool wrong_shift = false;
    bool wrong_no_change = false;
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      const double effect = sweep_.effects[i];
      const SequentialDecision& decision = decisions[i];
      wrong_shift = wrong_shift || is_wrong_shift(effect, decision.kind);
      wrong_no_change = wrong_no_change || is_wrong_no_change(effect, decision.kind);
      decided_ += is_decided(decision.kind) ? 1 : 0;
      pairs_ += decision.n;
      const auto used = std::span(differences[i]).first(static_cast<std::size_t>(decision.n));
      const auto [low, high] = reports::repeated_interval(reports::paired_estimate(used), 0.95, sweep_.looks);
      covered_ += low <= effect && effect <= high ? 1 : 0;
    }
    wrong_shift_ += wrong_shift ? 1 : 0;
    wrong_no_change_ += wrong_no_change ? 1 : 0;
    ++sweeps_;
  }

  const Sweep& sweep_;
  std::mt19937_64 random_;
  std::int64_t sweeps_ = 0;
  double wrong_shift_ = 0, wrong_no_change_ = 0, decided_ = 0, pairs_ = 0, covered_ = 0;
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
      {"all 0", std::vector(6, 0.0)},
      {"all δ", std::vector(6, 1.0)},
      {"all 2 δ", std::vector(6, 2.0)},
      {"0, 0, δ, −δ, 3 δ, −3 δ", {0, 0, 1, -1, 3, -3}}};
  std::vector<Sweep> sweeps;
  for (const auto& [name, effects] : truths)
    for (const reports::Looks looks : {reports::Looks{3, 20}, {4, 20}, {5, 5}})
      for (const double spread : {0.1, 0.3, 0.7, 1.0}) sweeps.push_back({name, effects, spread, looks, 0.05});
  return sweeps;
}

}  // namespace trainyard::bench
