#include "runner/parity/parity_check.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/sha256.h"
#include "runner/data/sampler.h"
#include "runner/device/precision.h"
#include "runner/device/step_times.h"
#include "runner/gradients/sparse_gradient.h"
#include "runner/optimizer/optimizer.h"
#include "runner/parity/reference_trainer.h"
#include "runner/trainer/trainer.h"
#include "runner/trainer/whole_tensors.h"

namespace trainyard::runner {

namespace {

constexpr std::int64_t first_epoch = 1;

std::int64_t parts_of_step(const experiments::Run& run) {
  return run.gradient_accumulation * run.strategy.micro_batches;
}

// The batches of the first epoch, for the ranks and for the reference trainer.
class Batches {
 public:
  Batches(const ResolvedRun& resolved, const Dataset& train, const Connections& ranks)
      : augmented_(resolved.augmentation.any()
                       ? train.augmented(resolved.augmentation, resolved.run.seed, first_epoch)
                       : nullptr),
        data_(augmented_ ? *augmented_ : train),
        order_(epoch_order(data_, resolved.run.global_batch, resolved.run.seed, first_epoch,
                           resolved.run.steps_per_epoch)),
        sampling_(resolved.sampling) {
    const std::int64_t samples =
        epoch_samples(data_, resolved.run.global_batch, resolved.run.steps_per_epoch);
    for (int replica = ranks.position.is_server() ? no_replica : 0; replica < ranks.mesh.replicas; ++replica)
      samplers_.emplace(replica,
                        Sampler(samples, resolved.run.global_batch, replica, ranks.mesh.replicas, sampling_));
  }

  std::int64_t steps() const { return samplers_.at(0).steps(); }

  void train(Trainer& trainer, int replica, std::int64_t k) const {
    trainer.step(data_, local_batch(replica, k));
  }

  // If the sampler is exact, the reference trainer divides the global batch itself.
  double train(ReferenceTrainer& reference, std::int64_t k) const {
    if (sampling_ == Sampling::exact) {
      const Part whole = samplers_.at(0).global_batch(k);
      const at::Tensor indices = order_.slice(0, whole.begin, whole.end);
      return reference.step(data_, indices, data_.weight(indices));
    }
    std::vector<LocalBatch> local_batches;
    for (const auto& [replica, sampler] : samplers_) local_batches.push_back(local_batch(replica, k));
    return reference.step(data_, local_batches);
  }

  // The part of a rank's summed loss in the mean over the global batch.
  double part_of_mean(double loss_sum, int replica, std::int64_t k) const {
    return loss_sum / static_cast<double>(local_batch(replica, k).divisor);
  }

 private:
  LocalBatch local_batch(int replica, std::int64_t k) const {
    return samplers_.at(replica).local_batch(data_, order_, k);
  }

  std::unique_ptr<Dataset> augmented_;  // null if the run has no augmentation
  const Dataset& data_;
  at::Tensor order_;
  Sampling sampling_;
  std::map<int, Sampler> samplers_;  // by replica, and on a server its own
};

double norm_of(const at::Tensor& tensor) {
  return tensor.detach().to(at::kDouble).norm().item<double>();
}

// The result of a step on this rank, without the comparison.
ProbedStep outcome_of(const std::vector<networks::NamedParameter>& parameters,
                      const std::vector<at::Tensor>& gradients, std::int64_t step) {
  ProbedStep outcome;
  outcome.step = step;
  const auto hashes = parameter_hashes(parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    outcome.layers.push_back({.path = parameters[i].name,
                              .gradient_norm = norm_of(whole(gradients.at(i))),
                              .difference = {},
                              .parameter_hash = hashes.at(parameters[i].name)});
  return outcome;
}

double sum_of_squares(const ProbedStep& outcome) {
  double squares = 0;
  for (const ProbedLayer& layer : outcome.layers) squares += layer.gradient_norm * layer.gradient_norm;
  return squares;
}

void compare(ProbedStep& outcome, const std::vector<at::Tensor>& gradients,
             const ReferenceTrainer& reference) {
  std::map<std::string, at::Tensor> expected;
  const auto parameters = reference.network().parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    expected[parameters[i].name] = whole(reference.gradients().at(i));
  for (std::size_t i = 0; i < outcome.layers.size(); ++i) {
    const at::Tensor own = whole(gradients.at(i)).to(at::kDouble);
    outcome.layers[i].difference = norm_of(own - expected.at(outcome.layers[i].path).to(at::kDouble));
  }
}

// The gradients, whole if they are those of parts.
std::vector<at::Tensor> gradients_of(Trainer& trainer, const Connections& ranks) {
  std::vector<at::Tensor> gradients = trainer.gradients();
  if (ranks.mesh.tensor == 1) return gradients;
  std::vector<networks::NamedParameter> named = trainer.network().parameters();
  for (std::size_t i = 0; i < named.size(); ++i) named[i].value = whole(gradients.at(i));
  return networks::values_of(whole_tensors(std::move(named), *ranks.parts));
}

// Parameters and running statistics of all stages of this replica, with the names of the complete network.
std::vector<networks::NamedParameter> whole_state(const networks::Network& own,
                                                  const networks::Network& whole, const Connections& ranks) {
  std::map<std::string, at::Tensor> held;
  for (const networks::NamedParameter& tensor : whole_tensors(own.state(), *ranks.parts))
    held[tensor.name] = tensor.value.detach();
  std::vector<networks::NamedParameter> state;
  for (const networks::NamedParameter& tensor : whole.state()) {
    const at::Tensor value = at::zeros(tensor.value.sizes(), tensor.value.options().requires_grad(false));
    if (const auto found = held.find(tensor.name); found != held.end()) value.copy_(found->second);
    ranks.stages->all_reduce(value)->wait();  // one stage has the tensor, the others add zeros
    state.push_back({tensor.name, value});
  }
  return state;
}

// The value of `own` on rank 0, on all ranks.
bool agreed(bool own, const Connections& ranks) {
  const at::Tensor word = at::full({1}, own ? 1 : 0, at::kLong);
  if (ranks.with_servers) {
    ranks.with_servers->broadcast(word, 0);
    return word.item<std::int64_t>() != 0;
  }
  ranks.parts->broadcast(word, 0);
  ranks.stages->broadcast(word, 0);
  ranks.replicas->broadcast(word, 0);
  return word.item<std::int64_t>() != 0;
}

// 60 bits of SHA-256 of the values in logical order, so that memory layout and device do not matter.
std::string hash_text(const at::Tensor& parameter) {
  const at::Tensor values = parameter.detach().to(at::kCPU).contiguous();
  const std::string_view bytes(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
  return sha256_hex(bytes).substr(0, 15);
}

std::int64_t hash_of(const at::Tensor& parameter) {
  return std::stoll(hash_text(parameter), nullptr, 16);
}

}  // namespace

std::int64_t probe_parity(const ResolvedRun& resolved, const models::InputShape& input, const Dataset& train,
                          const Connections& ranks, const std::function<void(const ProbedStep&)>& done,
                          const ProbeLimit& limit) {
  const experiments::Run& run = resolved.run;
  Stopwatch watch;
  double spent = 0;         // seconds of the check so far
  double fastest_step = 0;  // seconds of the training alone
  const Batches batches(resolved, train, ranks);
  Trainer trainer(resolved, input, ranks);
  if (resolved.precision.needs_loss_scale)
    trainer.scale_loss({.initial = resolved.precision.probed_loss_scale()});
  std::optional<ReferenceTrainer> reference;
  if (ranks.position.replica == 0) {
    reference.emplace(resolved, input, ranks.mesh.replicas, parts_of_step(run), std::nullopt, ranks.device);
  }
  spent += watch.lap();
  const std::int64_t steps = std::min(probed_steps, batches.steps());
  for (std::int64_t k = 0; k < steps; ++k) {
    const int replica = ranks.position.replica;
    const double rate = resolved.learning_rate_at({first_epoch, k, batches.steps()});
    trainer.set_learning_rate(rate);
    if (reference) reference->set_learning_rate(rate);
    batches.train(trainer, replica, k);
    const double step_seconds = watch.lap();
    fastest_step = k == 0 ? step_seconds : std::min(fastest_step, step_seconds);
    const auto gradients = gradients_of(trainer, ranks);
    ProbedStep outcome =
        outcome_of(whole_tensors(trainer.network().parameters(), *ranks.parts), gradients, k + 1);
    const MetricSums sums = trainer.take_metrics();
    const auto whole = [&](double own) { return sum_over(*ranks.stages, sum_over(*ranks.replicas, own)); };
    outcome.loss = sums.has_own_weight() ? whole(sums.loss()) / whole(sums.loss_weight())
                                         : whole(batches.part_of_mean(sums.loss(), replica, k));
    outcome.gradient_norm = std::sqrt(sum_over(*ranks.stages, sum_of_squares(outcome)));
    if (reference) {
      outcome.reference_loss = batches.train(*reference, k);
      compare(outcome, gradients, *reference);
      // The next step starts from the same weights again. Otherwise rounding could move an activation to the
      // other side of zero, which is a large difference.
      reference->load(whole_state(trainer.network(), reference->network(), ranks));
    }
    done(outcome);
    const double this_step = step_seconds + watch.lap();
    spent += this_step;
    const double run_seconds = fastest_step * static_cast<double>(batches.steps() * run.epochs);
    const bool time_left = spent + this_step <= std::max(limit.seconds, limit.part_of_the_run * run_seconds);
    if (!agreed(time_left, ranks)) return k + 1;
  }
  return steps;
}

void check_equal_parameters(const std::vector<networks::NamedParameter>& parameters,
                            Communicator& communicator) {
  std::vector<std::int64_t> hashes;
  hashes.reserve(parameters.size());
  for (const auto& parameter : parameters) hashes.push_back(hash_of(parameter.value));
  const at::Tensor own = at::tensor(hashes, at::kLong);
  const at::Tensor first = own.clone();
  communicator.broadcast(first, 0);
  const at::Tensor differing = own.ne(first).to(at::kLong);  // per parameter; then the number of ranks
  communicator.all_reduce(differing)->wait();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto ranks = differing[static_cast<std::int64_t>(i)].item<std::int64_t>();
    if (ranks == 0) continue;
    throw InternalError("ranks start with different parameters: " + std::to_string(ranks) + " of " +
                        std::to_string(communicator.size()) + " ranks differ from rank 0 in " +
                        parameters[i].name);
  }
}

std::map<std::string, std::string> parameter_hashes(const std::vector<networks::NamedParameter>& parameters) {
  std::map<std::string, std::string> hashes;
  for (const auto& parameter : parameters) hashes[parameter.name] = hash_text(parameter.value);
  return hashes;
}

}  // namespace trainyard::runner
