// bench_strong_scaling: compare replicas with the limit of the machine. Three arms train the same parts of
// the same batches on the same cores:
// - `unconnected`: ranks that do not communicate.
// - `in step`: unconnected ranks that wait for each other after each step.
// - `ddp`: replicas that exchange gradients.
// The arms take turns of some tenths of a second in the same processes, so that other load on the machine
// affects all of them. The difference between `unconnected` and `in step` is the cost of synchronous training
// on this machine, with any program. The difference between `in step` and `ddp` is the cost of trainyard.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/scaling_rank.h"
#include "experiments/file/file.h"
#include "reports/statistics/statistics.h"
#include "runner/device/rank_process.h"

namespace {

using namespace trainyard;
using bench::EpochSeconds;
using bench::Rounds;

struct Options {
  std::filesystem::path experiment = "experiments/six-models.toml";
  std::vector<std::string> models{"vgg11", "nbow", "seq2seq", "conv-autoencoder", "cnn", "mlp"};
  std::vector<std::string> set;
  std::optional<std::filesystem::path> data;
  int rounds = 30;
  double turn = 0.2;
};

// The value of `of_round` for each round.
template <class OfRound>
std::vector<double> each(const Rounds& rounds, const OfRound& of_round) {
  std::vector<double> values;
  for (std::size_t round = 0; round < rounds.front().size(); ++round) values.push_back(of_round(round));
  return values;
}

double milliseconds(const Rounds& rounds, bench::Arm arm, double EpochSeconds::*part) {
  return reports::median(each(rounds, [&](std::size_t round) { return 1e3 * rounds[arm][round].*part; }));
}

double percent_of_epoch(const Rounds& rounds, bench::Arm arm, double EpochSeconds::*part) {
  return reports::median(each(
      rounds, [&](std::size_t round) { return 100 * rounds[arm][round].*part / rounds[arm][round].whole; }));
}

// The speed of `arm` in percent of `limit`: geometric mean over rounds with its 95 % t interval.
std::string percent_of(const Rounds& rounds, bench::Arm arm, bench::Arm limit) {
  const auto estimate = reports::paired_estimate(each(rounds, [&](std::size_t round) {
    return std::log(rounds[limit][round].whole / rounds[arm][round].whole);
  }));
  const auto [low, high] = reports::confidence_interval(estimate, 0.95);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f (%.1f to %.1f)", 100 * std::exp(estimate.mean),
                100 * std::exp(low), 100 * std::exp(high));
  return text.data();
}

// The barriers after the turns of DDP: median, smallest and largest.
std::string barriers(const Rounds& rounds) {
  const std::vector<double> all =
      each(rounds, [&](std::size_t round) { return 1e9 * rounds[bench::ddp][round].barrier; });
  const auto [smallest, largest] = std::ranges::minmax(all);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.0f (%.0f to %.0f)", reports::median(all), smallest, largest);
  return text.data();
}

void print_head() {
  std::puts(
      "| model | unconnected ms | in step ms | DDP ms | in step of unconnected % | DDP of in step % "
      "| DDP of unconnected % | exposed communication % | slower replica %, in step "
      "| compute ms, in step, unconnected | optimizer ms, unconnected | barrier ns |");
  std::puts("|---|---:|---:|---:|---:|---:|---:|---:|---|---|---|---|");
}

void print_row(const std::string& model, const Rounds& rounds) {
  using enum bench::Arm;
  using Epoch = EpochSeconds;
  std::printf(
      "| %s | %.2f | %.2f | %.2f | %s | %s | %s | %.1f | %.1f, %.1f | %.2f, %.2f, %.2f | %.2f, %.2f | %s |\n",
      model.c_str(), milliseconds(rounds, unconnected, &Epoch::whole),
      milliseconds(rounds, in_step, &Epoch::whole), milliseconds(rounds, ddp, &Epoch::whole),
      percent_of(rounds, in_step, unconnected).c_str(), percent_of(rounds, ddp, in_step).c_str(),
      percent_of(rounds, ddp, unconnected).c_str(), percent_of_epoch(rounds, ddp, &Epoch::exposed),
      percent_of_epoch(rounds, ddp, &Epoch::straggler), percent_of_epoch(rounds, in_step, &Epoch::straggler),
      milliseconds(rounds, ddp, &Epoch::compute), milliseconds(rounds, in_step, &Epoch::compute),
      milliseconds(rounds, unconnected, &Epoch::compute), milliseconds(rounds, ddp, &Epoch::optimizer),
      milliseconds(rounds, unconnected, &Epoch::optimizer), barriers(rounds).c_str());
  std::fflush(stdout);
}

experiments::Run run_of(const Options& options, const std::string& model) {
  auto loaded =
      experiments::load(options.experiment, {options.set, {"model=" + model, "strategy=ddp", "seed=0"}});
  for (const auto& problem : loaded.problems)
    if (!problem.warning) throw std::runtime_error(to_text(problem));
  experiments::resolve_data(*loaded.experiment, experiments::data_search(options.data));
  return loaded.experiment->runs.at(0);
}

[[noreturn]] void be_rank(const Options& options, const std::string& model, const experiments::Run& run,
                          int rank, const std::filesystem::path& rendezvous) {
  runner::die_with_parent();
  try {
    const Rounds rounds = bench::train_in_turns(run, rank, rendezvous, options.rounds, options.turn);
    if (rank == 0) print_row(model, rounds);
    _exit(0);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    _exit(1);
  }
}

// Measure one model in new processes. False if one of them failed.
bool measure(const Options& options, const std::string& model) {
  const experiments::Run run = run_of(options, model);
  const auto rendezvous = std::filesystem::temp_directory_path() /
                          ("trainyard-scaling-" + std::to_string(getpid()) + "-" + model);
  std::fflush(stdout);  // otherwise each child would print it again
  for (int rank = 0; rank < run.strategy.replicas; ++rank)
    if (fork() == 0) be_rank(options, model, run, rank, rendezvous);
  bool done = true;
  for (int status = 0; wait(&status) > 0;) done = done && status == 0;
  std::filesystem::remove(rendezvous);
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  runner::tune_allocator();
  Options options;
  CLI::App app("Compare replicas with the limit of the machine: DDP, unconnected, and unconnected in step.");
  app.add_option("--experiment", options.experiment, "an experiment file with a strategy \"ddp\"")
      ->capture_default_str();
  app.add_option("--models", options.models, "models of that file")->capture_default_str();
  app.add_option("--set", options.set, "KEY=VALUE, as for `trainyard run`");
  app.add_option("--data", options.data, "folder of the data sets; default: TRAINYARD_DATA, then the file");
  app.add_option("--rounds", options.rounds, "number of rounds; every arm has one turn per round")
      ->capture_default_str()
      ->check(CLI::Range(2, 1'000'000));
  app.add_option("--turn", options.turn, "shortest turn in seconds")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    print_head();
    bool done = true;
    for (const std::string& model : options.models) done = measure(options, model) && done;
    return done ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
