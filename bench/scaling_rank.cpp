#include "bench/scaling_rank.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "runner/device/rank_process.h"
#include "runner/trainer/trainer.h"

namespace trainyard::bench {

namespace {

using namespace runner;

// A trainer that can return to its initial weights.
class Trained {
 public:
  Trained(const experiments::Run& run, Connections ranks)
      : ranks_(std::move(ranks)), trainer_(resolve(run), run.data.input, ranks_) {
    for (const auto& value : trainer_.state()) first_.push_back({value.name, value.value.clone()});
  }

  Trainer& trainer() { return trainer_; }
  void restart() { trainer_.restore(first_, 0); }

 private:
  Connections ranks_;
  Trainer trainer_;
  std::vector<networks::NamedParameter> first_;
};

experiments::Run alone(experiments::Run run) {
  run.strategy = {};
  return run;
}

class Rank {
 public:
  Rank(const experiments::Run& run, int rank, const Store& store)
      : all_(connected(run, rank, store, "all")),
        alone_(alone(run), runner::unconnected()),
        replica_(run, connected(run, rank, store, "replicas")),
        data_(make_parts(models::read(run.data), replica_.trainer().task(), at::kFloat,
                         replica_.trainer().network().channels_last)),
        sampler_(data_.train->size(), run.global_batch, rank, run.strategy.replicas) {}

  EpochSeconds turn(Arm arm, std::int64_t epochs) {
    Trained& trained = arm == ddp ? replica_ : alone_;
    trained.restart();
    Communicator& others = *all_.replicas;
    others.barrier();
    double waited = 0;
    const auto step_done = [&](std::int64_t, const MetricSums&) {
      if (arm != in_step) return;
      Stopwatch watch;
      others.barrier();
      waited += watch.lap();
    };
    Stopwatch watch;
    StepTimes times;
    for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
      trained.trainer().train_epoch(*data_.train, epoch, sampler_, step_done);
      add(times, trained.trainer().take_times());
    }
    const double whole = watch.lap();
    trained.trainer().take_metrics();
    const double straggler = arm == ddp ? times.straggler.value_or(0) : arm == in_step ? waited : 0;
    const auto per_epoch = [&](double seconds) { return seconds / static_cast<double>(epochs); };
    return mean_over_ranks({per_epoch(whole), per_epoch(times.passed.forward + times.passed.backward),
                            per_epoch(times.passed.exposed_communication + waited), per_epoch(straggler),
                            per_epoch(times.passed.optimizer), barrier_seconds()});
  }

  // The number of epochs with which a turn of every arm lasts at least `seconds`. One epoch of each arm is
  // timed.
  std::int64_t epochs_for(double seconds) {
    double shortest = seconds;
    for (const Arm arm : {unconnected, in_step, ddp}) shortest = std::min(shortest, turn(arm, 1).whole);
    return static_cast<std::int64_t>(std::ceil(seconds / shortest));
  }

 private:
  static Connections connected(const experiments::Run& run, int rank, const Store& store, const char* name) {
    return connect(c10::make_intrusive<c10d::PrefixStore>(name, store),
                   {.replicas = static_cast<int>(run.strategy.replicas), .stages = 1}, rank,
                   /*one_host=*/true);
  }

  static void add(StepTimes& sum, const StepTimes& more) {
    sum.passed.add(more.passed, 1);
    sum.straggler = sum.straggler.value_or(0) + more.straggler.value_or(0);
  }

  // Shows whether the cores share a cache. The cores of a virtual machine may or may not, and that can
  // change.
  double barrier_seconds() {
    constexpr int times = 2000;
    all_.replicas->barrier();
    Stopwatch watch;
    for (int i = 0; i < times; ++i) all_.replicas->barrier();
    return watch.lap() / times;
  }

  EpochSeconds mean_over_ranks(const std::array<double, 6>& own) {
    const at::Tensor sum = at::empty({6}, at::kDouble);
    std::ranges::copy(own, sum.mutable_data_ptr<double>());
    all_.replicas->all_reduce(sum)->wait();
    sum.div_(static_cast<double>(all_.replicas->size()));
    const double* const mean = sum.const_data_ptr<double>();
    return {mean[0], mean[1], mean[2], mean[3], mean[4], mean[5]};
  }

  Connections all_;
  Trained alone_;
  Trained replica_;
  DataParts data_;
  Sampler sampler_;
};

}  // namespace

Rounds train_in_turns(const experiments::Run& run, int rank, const std::filesystem::path& rendezvous,
                      int rounds, double turn_seconds) {
  at::set_num_threads(1);
  const std::vector<int> cores = affinity();
  pin_to({cores[static_cast<std::size_t>(rank) % cores.size()]});
  const auto replicas = static_cast<int>(run.strategy.replicas);
  Rank trained(run, rank, c10::make_intrusive<c10d::FileStore>(rendezvous.string(), replicas));
  trained.epochs_for(turn_seconds);  // warm-up
  const std::int64_t epochs = trained.epochs_for(turn_seconds);
  Rounds found;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t arm = (i + static_cast<std::size_t>(round)) % found.size();
      found[arm].push_back(trained.turn(static_cast<Arm>(arm), epochs));
    }
  }
  return found;
}

}  // namespace trainyard::bench
