#include "runner/trainer.h"

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "models/catalogue.h"
#include "models/error.h"
#include "runner/clipping.h"
#include "runner/precision.h"
#include "runner/replica_sum.h"
#include "runner/row_gradient.h"
#include "runner/shared_optimizer.h"
#include "runner/strategy.h"
#include "runner/translation.h"

namespace trainyard::runner {

namespace {

networks::Network build_stage(const experiments::Run& run, const models::InputShape& input, int stage,
                              at::ScalarType dtype) {
  const auto layers = models::find_model(run.model).layers(run.hyperparameters, input).size();
  const StageLayers range = layers_of_stage(run.strategy, stage, layers);
  return networks::build_network(run.model, run.hyperparameters, input, run.seed, dtype,
                                 networks::LayerRange{range.first, range.last});
}

std::unique_ptr<Reducer> make_reducer(const networks::Network& network, Communicator& replicas) {
  return replicas.size() == 1 ? local_reducer(network.parameters())
                              : bucket_reducer(network.parameters(), replicas);
}

int micro_batches_of(const experiments::Run& run) {
  return static_cast<int>(run.strategy.micro_batches);
}

// How a stage trains in a step: as many turns as gradients accumulate over.
std::vector<Action> training_actions(const experiments::Run& run, const Connections& ranks) {
  const int micro_batches = micro_batches_of(run);
  const Schedule once = training_schedule(run.strategy.schedule, ranks.mesh.stages, micro_batches);
  return in_turns(once, micro_batches, static_cast<int>(run.gradient_accumulation))
      .at(static_cast<std::size_t>(ranks.position.stage));
}

std::vector<Action> forward_actions(const Connections& ranks, int micro_batches) {
  return evaluation_schedule(ranks.mesh.stages, micro_batches)
      .at(static_cast<std::size_t>(ranks.position.stage));
}

// `places` in contiguous parts whose sizes differ by at most one.
std::vector<at::Tensor> divided(const at::Tensor& places, int parts) {
  std::vector<at::Tensor> divided;
  for (int i = 0; i < parts; ++i) {
    const Part part = part_of({0, places.size(0)}, i, parts);
    divided.push_back(places.slice(0, part.begin, part.end));
  }
  return divided;
}

std::vector<std::int64_t> sizes_of(const networks::Activations& inputs) {
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& input : inputs)
    sizes.insert(sizes.end(), input.sizes().begin(), input.sizes().end());
  return sizes;
}

// What an optimizer remembers, by place.
std::vector<networks::NamedParameter> named(const std::vector<std::vector<at::Tensor>>& rows) {
  std::vector<networks::NamedParameter> named;
  for (const std::vector<at::Tensor>& row : rows)
    for (const at::Tensor& tensor : row)
      named.push_back({"optimizer." + std::to_string(named.size()), tensor});
  return named;
}

std::optional<at::Tensor> skipped_by(const std::optional<LossScale>& scale) {
  if (!scale) return std::nullopt;
  return scale->found_inf();
}

Batch gather(const SplitData& data, const at::Tensor& places, bool inputs, bool targets) {
  if (inputs && targets) return data.gather(places);
  return {inputs ? data.inputs(places) : networks::Activations(),
          targets ? data.targets(places) : at::Tensor(), places};
}

}  // namespace

Trainer::Trainer(const experiments::Run& run, const models::InputShape& input, const Connections& ranks,
                 at::ScalarType dtype)
    : run_(run),
      ranks_(ranks),
      task_(&find_task(models::find_model(run.model).task)),
      network_(build_stage(run, input, ranks.position.stage, dtype)),
      reducer_(make_reducer(network_, *ranks.replicas)),
      optimizer_(shared_optimizer(run.optimizer, network_.parameter_values(), *ranks.replicas)),
      executor_(network_, *ranks.stages, run.precision),
      training_(training_actions(run, ranks)),
      evaluation_(forward_actions(ranks, micro_batches_of(run))),
      inference_(forward_actions(ranks, 1)),
      metrics_(*task_) {
  if (needs_loss_scale(run.precision)) scale_loss(LossScaling());
}

StageWork Trainer::work_on(const SplitData& data, const at::Tensor& places, int micro_batches,
                           MetricSums& sums, std::int64_t divisor) const {
  StageWork work;
  work.samples = divided(places, micro_batches);
  work.context.seed = run_.seed;
  work.context.step = steps_done_;
  work.gather = [&data](const at::Tensor& samples, bool inputs, bool targets) {
    return gather(data, samples, inputs, targets);
  };
  work.shape = [&data](const at::Tensor& samples) { return data.shape(samples); };
  work.loss = [&data, &sums, divisor, this](const at::Tensor& samples, const networks::Activations& outputs,
                                            const at::Tensor& targets) {
    const at::Tensor output = for_loss(outputs.front());
    const at::Tensor sum = task_->loss_sum(output, targets);
    sums.add(sum, output, targets, data.weight(samples));
    const at::Tensor loss = sum * (1.0 / static_cast<double>(divisor));
    return loss_scale_ ? loss_scale_->scaled(loss) : loss;
  };
  return work;
}

void Trainer::step(const SplitData& data, const at::Tensor& places, std::int64_t divisor) {
  const int micro_batches = static_cast<int>(run_.gradient_accumulation) * micro_batches_of(run_);
  StageWork work = work_on(data, places, micro_batches, metrics_, divisor);
  if (run_.batch_norm == "sync" && ranks_.mesh.replicas > 1) {
    work.context.sum_over_replicas = [this](const at::Tensor& tensor) {
      return sum_over_ranks(tensor, *ranks_.replicas);
    };
  }
  PartWatch watch(times_);
  reducer_->prepare();
  const bool had_samples = executor_.run(training_, work, *reducer_, times_);
  watch.skip();
  had_samples ? reducer_->finish() : reducer_->reduce_zeros();
  watch.lap(&TimeParts::exposed_communication);
  if (loss_scale_) loss_scale_->unscale(numbers_of(reducer_->gradients()), *ranks_.stages);
  if (run_.optimizer.clip_norm > 0) clip_gradients_of_all_stages();
  const bool has_parameters = !reducer_->gradients().empty();
  if (has_parameters) optimizer_->update(reducer_->gradients(), skipped_by(loss_scale_));
  if (loss_scale_) loss_scale_->update();
  watch.lap(&TimeParts::optimizer);
  if (has_parameters) optimizer_->wait_for_others();
  ++steps_done_;
  ++times_.steps;
  watch.lap(&TimeParts::exposed_communication);
}

void Trainer::train_epoch(const SplitData& data, std::int64_t epoch, const Sampler& sampler,
                          const StepDone& done) {
  PartWatch watch(times_);
  const auto augmented = data.augmented(run_.augmentation, run_.seed, epoch);
  const at::Tensor order = epoch_order(data, run_.global_batch, run_.seed, epoch);
  for (std::int64_t k = 0; k < sampler.steps(); ++k) {
    const Share share = sampler.share(*augmented, order, k);
    watch.lap(&TimeParts::data);
    step(*augmented, share.places, share.divisor);
    done(k + 1, metrics_);
    watch.skip();
  }
}

MetricSums Trainer::evaluate(const SplitData& data, const Sampler& sampler, const StepDone& done) {
  take_running_statistics();
  MetricSums sums(*task_);
  StepTimes unrecorded;
  const at::Tensor order = evaluation_order(data);
  for (std::int64_t k = 0; k < sampler.steps(); ++k) {
    StageWork work = work_on(data, sampler.places(order, k), micro_batches_of(run_), sums, /*divisor=*/1);
    work.context.training = false;
    executor_.run(evaluation_, work, *reducer_, unrecorded);
    done(k + 1, sums);
  }
  return sums;
}

at::Tensor Trainer::next_tokens(const networks::Activations& inputs) {
  const at::Tensor tokens = at::empty({inputs.front().size(0)}, at::kLong);
  StageWork work;
  work.samples = {at::arange(tokens.size(0))};
  work.context.training = false;
  work.gather = [&](const at::Tensor& samples, bool, bool) { return Batch{inputs, {}, samples}; };
  work.shape = [&](const at::Tensor&) { return sizes_of(inputs); };
  work.loss = [&](const at::Tensor&, const networks::Activations& outputs, const at::Tensor&) {
    tokens.copy_(last_tokens(outputs.front()));
    return at::Tensor();
  };
  StepTimes unrecorded;
  executor_.run(inference_, work, *reducer_, unrecorded);
  ranks_.stages->broadcast(tokens, ranks_.mesh.stages - 1);
  return tokens;
}

// Replicas hold equal gradients, stages each their own.
void Trainer::clip_gradients_of_all_stages() {
  clip_gradients(reducer_->gradients(), run_.optimizer.clip_norm,
                 [this](double own) { return sum_over(*ranks_.stages, own); });
}

void Trainer::take_running_statistics() {
  const at::NoGradGuard no_grad;
  for (const auto& buffer : network_.buffers()) ranks_.replicas->broadcast(buffer.value, 0);
}

std::vector<networks::NamedParameter> Trainer::remembered_values() const {
  std::vector<networks::NamedParameter> values = named(optimizer_->state());
  if (loss_scale_)
    for (auto& value : loss_scale_->state()) values.push_back(std::move(value));
  return values;
}

std::vector<networks::NamedParameter> Trainer::state() const {
  std::vector<networks::NamedParameter> state = network_.state();
  for (auto& remembered : remembered_values()) state.push_back(std::move(remembered));
  return state;
}

void Trainer::restore(const std::vector<networks::NamedParameter>& state, std::int64_t steps) {
  const at::NoGradGuard no_grad;
  networks::load_values(network_, state);
  for (const auto& remembered : remembered_values()) {
    const auto found = std::find_if(state.begin(), state.end(),
                                    [&](const auto& each) { return each.name == remembered.name; });
    if (found == state.end() || found->value.sizes() != remembered.value.sizes())
      throw InternalError("a state to go on from has no " + remembered.name + " of this shape");
    at::Tensor(remembered.value).copy_(found->value);
  }
  optimizer_->go_on_after(steps);
  steps_done_ = steps;
}

MetricSums Trainer::take_metrics() {
  return std::exchange(metrics_, MetricSums(*task_));
}

std::optional<ScaledSteps> Trainer::take_scaled_steps() {
  if (!loss_scale_) return std::nullopt;
  return ScaledSteps{loss_scale_->value(), loss_scale_->take_skipped_steps()};
}

void Trainer::scale_loss(const LossScaling& scaling) {
  loss_scale_.emplace(ranks_.device, scaling);
}

StepTimes Trainer::take_times() {
  StepTimes none;
  if (times_.on_core) none.on_core.emplace();
  return std::exchange(times_, none);
}

}  // namespace trainyard::runner
