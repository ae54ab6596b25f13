#include "runner/parity/replay_check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "runner/data/sampler.h"
#include "runner/optimizer/replayed_servers.h"
#include "runner/trainer/trainer.h"

namespace trainyard::runner {

namespace {

constexpr std::int64_t updates_per_replica = 2, epoch = 1;

Sampler sampler_of(const ResolvedRun& resolved, const Dataset& train, const Connections& ranks) {
  const experiments::Run& run = resolved.run;
  const std::int64_t few = updates_per_replica * run.strategy.replicas * run.global_batch;
  return {std::min(epoch_samples(train, run.global_batch, run.steps_per_epoch), few), run.global_batch,
          ranks.position.is_server() ? no_replica : 0, 1, resolved.sampling};
}

void send_log(const ServerLog& log, Communicator& ranks) {
  const at::Tensor events = at::tensor(log.events, at::kLong);
  ranks.send(at::full({1}, events.numel(), at::kLong), 0, 0)->wait();
  ranks.send(events, 0, 0)->wait();
}

ServerEvents receive_log(int rank, Communicator& ranks) {
  const at::Tensor count = at::zeros({1}, at::kLong);
  ranks.receive(count, rank, 0)->wait();
  const at::Tensor events = at::zeros({count.item<std::int64_t>()}, at::kLong);
  ranks.receive(events, rank, 0)->wait();
  const auto* const first = events.const_data_ptr<std::int64_t>();
  return {first, first + events.numel()};
}

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.detach().to(at::kDouble).clone());
  return copies;
}

double norm_of_difference(const at::Tensor& one, const at::Tensor& other) {
  return (one - other).norm().item<double>();
}

// The same updates in one process.
struct Replayed {
  std::vector<at::Tensor> parameters;
  double loss = 0;
};

Replayed replay(const ResolvedRun& resolved, const models::InputShape& input, const Dataset& train,
                const Connections& ranks, const std::vector<ServerEvents>& logs) {
  const Connections alone = unconnected(ranks.device);
  Trainer trainer(resolved, input, alone, {}, replay_of(resolved.run, [&] { return logs; }));
  trainer.train_epoch(train, epoch, sampler_of(resolved, train, alone), [](auto, const auto&) {});
  const MetricSums sums = trainer.take_metrics();
  return {copies_of(trainer.network().parameter_values()), sums.loss() / sums.loss_weight()};
}

}  // namespace

void probe_replay(const ResolvedRun& resolved, const models::InputShape& input, const Dataset& train,
                  const Connections& ranks, const std::function<void(const ProbedStep&)>& done) {
  Trainer trainer(resolved, input, ranks);
  const std::vector<at::Tensor> before = copies_of(trainer.network().parameter_values());
  trainer.train_epoch(train, epoch, sampler_of(resolved, train, ranks), [](auto, const auto&) {});
  if (ranks.position.is_server()) return send_log(trainer.take_server_log(), *ranks.with_servers);

  ProbedStep outcome;
  outcome.step = 1;
  const std::vector<at::Tensor> after = copies_of(trainer.network().parameter_values());
  const auto hashes = parameter_hashes(trainer.network().parameters());
  const auto parameters = trainer.network().parameters();
  double squares = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double change = norm_of_difference(after[i], before[i]);
    squares += change * change;
    outcome.layers.push_back({.path = parameters[i].name,
                              .gradient_norm = change,
                              .difference = {},
                              .parameter_hash = hashes.at(parameters[i].name)});
  }
  outcome.gradient_norm = std::sqrt(squares);
  const MetricSums sums = trainer.take_metrics();
  outcome.loss = sum_over(*ranks.replicas, sums.loss()) / sum_over(*ranks.replicas, sums.loss_weight());
  if (ranks.position.replica == 0) {
    std::vector<ServerEvents> logs;
    logs.reserve(static_cast<std::size_t>(ranks.mesh.servers));
    for (int server = 0; server < ranks.mesh.servers; ++server)
      logs.push_back(receive_log(ranks.mesh.workers() + server, *ranks.with_servers));
    const Replayed expected = replay(resolved, input, train, ranks, logs);
    outcome.reference_loss = expected.loss;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      outcome.layers[i].difference = norm_of_difference(after[i], expected.parameters[i]);
  }
  done(outcome);
}

}  // namespace trainyard::runner
