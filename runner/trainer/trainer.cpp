#include "runner/trainer/trainer.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "models/networks/libtorch_private.h"
#include "runner/communicator/communicator.h"
#include "runner/device/gpu.h"
#include "runner/device/precision.h"
#include "runner/device/step_times.h"
#include "runner/gradients/clipping.h"
#include "runner/gradients/sharded_reducer.h"
#include "runner/gradients/sparse_gradient.h"
#include "runner/optimizer/async_server.h"
#include "runner/optimizer/parameter_server.h"
#include "runner/optimizer/sharded_optimizer.h"
#include "runner/optimizer/zero.h"
#include "runner/trainer/mesh.h"
#include "runner/trainer/translation.h"

namespace trainyard::runner {

namespace {

// Cuts `indices` into contiguous parts whose sizes differ by at most one.
std::vector<at::Tensor> divided(const at::Tensor& indices, int parts) {
  std::vector<at::Tensor> divided;
  for (int i = 0; i < parts; ++i) {
    const Part part = part_of({0, indices.size(0)}, i, parts);
    divided.push_back(indices.slice(0, part.begin, part.end));
  }
  return divided;
}

// More actions of a step are not recorded, because its record would be too long, and nobody could read its timeline.
constexpr std::size_t most_recorded_actions = 1000;

// Ranks that begin each step together.
class StepsTogether final : public StepOrder {
 public:
  explicit StepsTogether(Communicator& all) : all_(all) {}
  std::optional<std::int64_t> next() override {
    all_.barrier();
    return StepOrder::next();
  }

 private:
  Communicator& all_;
};

// Collective.
Update usual_update(const experiments::Run& run, const networks::Network& network, const Connections& ranks) {
  const experiments::Optimizer& settings = run.optimizer;
  const auto values = network.parameter_values();
  const auto factors = group_factors(settings, values, network.parameter_factors());
  if (ranks.with_servers)
    return (run.strategy.is_async() ? async_update : served_update)(settings, network.parameters(), factors,
                                                                    *ranks.with_servers, run.strategy);
  if (ranks.in_step)
    return {local_reducer(network.parameters()), make_optimizer(settings, values, factors),
            std::make_unique<StepsTogether>(*ranks.in_step)};
  Communicator& replicas = *ranks.replicas;
  if (replicas.size() == 1)
    return {local_reducer(network.parameters()), make_optimizer(settings, values, factors)};
  if (can_share(values)) {
    const ShardLayout layout(values, cut_into_buckets(values, default_bucket_bytes));
    Update update{sharded_reducer(network.parameters(), layout, replicas),
                  sharded_optimizer(settings, values, layout, replicas, factors)};
    if (update.reducer && update.optimizer) return update;
  }
  if (!run.strategy.sharding.empty())
    return zero_update(settings, network, factors, run.strategy.sharding,
                       static_cast<int>(run.gradient_accumulation), replicas);
  return {bucket_reducer(network.parameters(), replicas), make_optimizer(settings, values, factors)};
}

int micro_batches_of(const experiments::Run& run) {
  return static_cast<int>(run.strategy.micro_batches);
}

// The actions of the rank's stage in a training step, with gradient accumulation, and in evaluation. A server has none.
std::vector<Action> training_actions(const experiments::Run& run, const Connections& ranks) {
  if (ranks.position.is_server()) return {};
  const int micro_batches = micro_batches_of(run);
  const Schedule once = training_schedule(run.strategy.schedule, ranks.mesh.stages, micro_batches);
  return in_turns(once, micro_batches, static_cast<int>(run.gradient_accumulation))
      .at(static_cast<std::size_t>(ranks.position.stage));
}

std::vector<Action> forward_actions(const Connections& ranks, int micro_batches) {
  if (ranks.position.is_server()) return {};
  return evaluation_schedule(ranks.mesh.stages, micro_batches)
      .at(static_cast<std::size_t>(ranks.position.stage));
}

networks::Activations moved_to(at::Device device, networks::Activations all) {
  for (at::Tensor& tensor : all) tensor = tensor.to(device);
  return all;
}

}  // namespace

Trainer::Trainer(const ResolvedRun& resolved, const models::InputShape& input, const Connections& ranks,
                 std::optional<at::ScalarType> dtype, const MakeUpdate& make_update)
    : resolved_(resolved),
      run_(resolved_.run),
      ranks_(ranks),
      network_(build_stage(resolved, input, ranks, dtype.value_or(resolved.precision.parameters))),
      update_(make_update ? make_update(network_) : usual_update(run_, network_, ranks)),
      loss_scale_(resolved.precision.needs_loss_scale ? dynamic_loss_scale(ranks.device)
                                                      : std::make_unique<LossScale>()),
      executor_(network_, *ranks.stages, resolved.precision),
      training_(training_actions(run_, ranks)),
      evaluation_(forward_actions(ranks, micro_batches_of(run_))),
      inference_(forward_actions(ranks, 1)),
      metrics_(resolved.task, ranks.device),
      step_weight_(at::zeros({}, at::TensorOptions(ranks.device).dtype(at::kDouble))) {
  if (ranks.device.is_cuda()) times_.device = timeline_ = std::make_shared<DeviceTimeline>(gpu_marks());
  const bool captures = runner::why_not_captured(run_, ranks.device, ranks.transport()).empty();
  capture_steps(captures ? gpu_graphs() : MakeCudaGraph());
}

StageWork Trainer::work_on(const Dataset& data, const StepInput& input, int micro_batches,
                           MetricSums& sums) const {
  StageWork work;
  work.samples = divided(input.indices, micro_batches);
  work.context.seed = run_.seed;
  work.context.step = input.number;
  work.context.step_on_device = input.number_on_device;
  exchange_parts(work.context);
  work.gather = [&data](const at::Tensor& samples, bool inputs, bool targets) {
    return data.for_network(samples, inputs, targets);
  };
  work.shape = [&data](const at::Tensor& samples) { return data.shape(samples); };
  // The number of positions is a value of a tensor: a CUDA graph cannot have it, and a GPU would have to
  // wait.
  if (!input.captured() && ranks_.device.is_cpu()) work.positions = resolved_.task.positions;
  work.loss = [&sums, &input, this](const at::Tensor&, const networks::Activations& outputs,
                                    const at::Tensor& targets) {
    networks::Activations all = outputs;
    std::ranges::transform(all, all.begin(), for_loss);
    const Task& task = resolved_.task;
    const at::Tensor sum = task.sum_of(all, targets);
    sums.add(sum, all, targets);
    if (task.own_loss.is_weighted()) step_weight_.add_(task.weight_of(all));
    return loss_scale_->scaled(
        task.own_loss.is_sum() || task.own_loss.is_weighted() ? sum : input.part_of_mean(sum));
  };
  return work;
}

void Trainer::exchange_parts(networks::ForwardContext& context) const {
  if (ranks_.mesh.tensor == 1) return;
  context.sum_over_parts = [this](const at::Tensor& part) { return sum_of_parts(part, *ranks_.parts); };
  context.copy_to_parts = [this](const at::Tensor& whole) { return copy_to_parts(whole, *ranks_.parts); };
}

void Trainer::step(const Dataset& data, const LocalBatch& local) {
  take_step(data, local);
  update_.whole->gather();
}

void Trainer::take_step(const Dataset& data, const LocalBatch& local) {
  steps_->run(data, local, steps_done_, times_);
  count(metrics_, data, local.indices);
  ++steps_done_;
  ++times_.steps;
}

// Only the last stage has the loss, so only there a weight belongs to it.
void Trainer::count(MetricSums& sums, const Dataset& data, const at::Tensor& indices) const {
  if (ranks_.last_stage()) sums.count(data.weight(indices));
}

void Trainer::compute(const Dataset& data, const StepInput& input, StepTimes& times) {
  const int micro_batches = static_cast<int>(run_.gradient_accumulation) * micro_batches_of(run_);
  StageWork work = work_on(data, input, micro_batches, metrics_);
  if (run_.batch_norm == "sync" && ranks_.mesh.replicas > 1) {
    work.context.sum_over_replicas = [this](const at::Tensor& tensor) {
      return sum_over_ranks(tensor, *ranks_.replicas);
    };
  }
  if (resolved_.task.own_loss.is_weighted()) step_weight_.zero_();
  PartWatch watch(times);
  update_.whole->begin_step(work.context);
  Reducer& reducer = *update_.reducer;
  Optimizer& optimizer = *update_.optimizer;
  reducer.prepare();
  const bool had_samples = executor_.run(training_, work, reducer, times);
  watch.skip();
  had_samples ? reducer.finish() : reducer.reduce_zeros();
  if (!held_) held_ = held_bytes(update_, network_.parameter_values());
  if (resolved_.task.own_loss.is_weighted()) divide_by_weight();
  watch.lap(&TimeParts::exposed_communication);
  loss_scale_->unscale(reducer.gradients(), [this](const at::Tensor& own) { sum_over_whole_model(own); });
  if (run_.optimizer.clip_norm > 0) clip_whole_model();
  optimizer.update(reducer.gradients(), loss_scale_->found_inf());
  loss_scale_->update();
  watch.lap(&TimeParts::optimizer);
  optimizer.synchronize();
  watch.lap(&TimeParts::exposed_communication);
}

void Trainer::train_epoch(const Dataset& data, std::int64_t epoch, const Sampler& sampler,
                          const StepDone& done) {
  take_straggler_seconds(*ranks_.replicas);  // drops the seconds from before the training
  PartWatch watch(times_);
  std::unique_ptr<Dataset> augmented;
  if (resolved_.augmentation.any()) {
    augmented = data.augmented(resolved_.augmentation, run_.seed, epoch);
    steps_->clear();  // the samples are at other addresses
  }
  const Dataset& samples = augmented ? *augmented : data;
  at::Tensor order = epoch_order(data, run_.global_batch, run_.seed, epoch, run_.steps_per_epoch);
  if (ranks_.device.is_cuda()) order = order.pin_memory();  // so that a step does not wait for its samples
  const std::int64_t recorded = recorded_step(epoch, sampler.steps());
  const std::int64_t before = steps_done_;
  update_.order->begin_epoch(sampler.steps());
  while (const auto k = update_.order->next()) {
    watch.lap(&TimeParts::exposed_communication);
    steps_done_ = before + *k;
    times_.recording = *k == recorded;
    if (times_.recording) times_.recorded.emplace(RecordedStep{*k + 1, {}});
    const LocalBatch local = sampler.local_batch(samples, order, *k);
    watch.lap(&TimeParts::data);
    set_learning_rate(resolved_.learning_rate_at({epoch, *k, sampler.steps()}));
    take_step(samples, local);
    done(*k + 1, metrics_);
    watch.skip();
  }
  steps_done_ = before + sampler.steps();
  update_.whole->gather();
  watch.lap(&TimeParts::exposed_communication);
  times_.recording = false;
  times_.straggler = take_straggler_seconds(*ranks_.replicas);
}

// The last step but one has a whole batch. The first epoch is slower than later ones. Times of the host say nothing
// about a GPU, which works asynchronously.
std::int64_t Trainer::recorded_step(std::int64_t epoch, std::int64_t steps) const {
  const bool recorded = ranks_.mesh.stages > 1 && !times_.device &&
                        epoch == std::min<std::int64_t>(2, run_.epochs) &&
                        training_.size() <= most_recorded_actions;
  return recorded ? std::max<std::int64_t>(0, steps - 2) : -1;
}

// The learning rate is a constant of a CUDA graph.
void Trainer::set_learning_rate(double learning_rate) {
  if (learning_rate_ == learning_rate) return;
  steps_->clear();
  learning_rate_ = learning_rate;
  update_.optimizer->set_learning_rate(learning_rate);
}

void Trainer::capture_steps(const MakeCudaGraph& make) {
  const auto compute = [this](const Dataset& data, const StepInput& input, StepTimes& times) {
    this->compute(data, input, times);
  };
  if (make)
    steps_ = replayed_steps(compute, make, ranks_.device, *ranks_.replicas, timeline_);
  else
    steps_ = std::make_unique<StepRunner>(compute,
                                          runner::why_not_captured(run_, ranks_.device, ranks_.transport()));
}

MetricSums Trainer::evaluate(const Dataset& data, const Sampler& sampler, const StepDone& done) {
  take_running_statistics();
  MetricSums sums(resolved_.task, ranks_.device);
  StepTimes unrecorded;
  const at::Tensor order = evaluation_order(data);
  for (std::int64_t k = 0; k < sampler.steps(); ++k) {
    const at::Tensor indices = sampler.indices(order, k);
    // a negative number, so that an evaluation that draws numbers has others than training
    const StepInput input{.indices = indices, .number = -1 - steps_done_ - k};
    const auto padded = data.in_step(sampler.indices_of_all(order, k));
    StageWork work = work_on(padded ? *padded : data, input, micro_batches_of(run_), sums);
    work.context.training = false;
    executor_.run(evaluation_, work, *update_.reducer, unrecorded);
    count(sums, data, indices);
    done(k + 1, sums);
  }
  return sums;
}

at::Tensor Trainer::next_tokens(const networks::Activations& inputs) {
  at::Tensor tokens = at::empty({inputs.front().size(0)}, at::kLong);
  StageWork work;
  work.samples = {at::arange(tokens.size(0))};
  work.context.training = false;
  exchange_parts(work.context);
  work.gather = [&](const at::Tensor& samples, bool, bool) {
    return Batch{moved_to(ranks_.device, inputs), {}, samples};
  };
  const at::Tensor &source = inputs.front(), &target = inputs.back();
  work.shape = [&](const at::Tensor&) {
    return std::vector{source.size(0), source.size(1), target.size(0), target.size(1)};
  };
  work.loss = [&](const at::Tensor&, const networks::Activations& outputs, const at::Tensor&) {
    tokens.copy_(last_tokens(outputs.front()));
    return at::Tensor();
  };
  StepTimes unrecorded;
  executor_.run(inference_, work, *update_.reducer, unrecorded);
  ranks_.stages->broadcast(tokens, ranks_.mesh.stages - 1);
  ranks_.parts->broadcast(tokens, 0);
  return tokens;
}

// `own` is a sum over the gradients that this rank updates with. Stages have different gradients. Replicas
// have the same ones, or different shards of them. Parts have different gradients of split layers.
void Trainer::sum_over_whole_model(const at::Tensor& own) const {
  if (update_.reducer->sharded()) ranks_.replicas->all_reduce(own)->wait();
  ranks_.parts->all_reduce(own)->wait();
  ranks_.stages->all_reduce(own)->wait();
}

// The weights are known after the forward pass, so the gradients are those of the sum until now.
void Trainer::divide_by_weight() {
  ranks_.replicas->all_reduce(step_weight_)->wait();
  ranks_.stages->all_reduce(step_weight_)->wait();  // only the last stage has some
  libtorch::divide_each(numbers_of(update_.reducer->gradients()), step_weight_.item<double>());
}

// Every part has the gradients of whole parameters, but only the first one counts them. Empty: all count.
std::optional<std::vector<at::Tensor>> Trainer::counted_gradients() const {
  if (ranks_.position.part == 0) return std::nullopt;
  std::vector<at::Tensor> gradients = update_.reducer->gradients();
  const auto parameters = network_.parameters();
  std::size_t i = 0;
  std::erase_if(gradients,
                [&](const at::Tensor&) { return !parameters[update_.reducer->parameter_of(i++)].cut; });
  return gradients;
}

void Trainer::clip_whole_model() {
  const auto& gradients = update_.reducer->gradients();
  if (!ranks_.device.is_cpu())
    return clip_without_sync(
        gradients, run_.optimizer.clip_norm, ranks_.device,
        [this](const at::Tensor& own) { sum_over_whole_model(own); }, counted_gradients());
  clip_gradients(
      gradients, run_.optimizer.clip_norm,
      [this](double own) {
        const at::Tensor sum = at::full({}, own, at::kDouble);
        sum_over_whole_model(sum);
        return sum.item<double>();
      },
      counted_gradients());
}

void Trainer::take_running_statistics() {
  const at::NoGradGuard no_grad;
  for (const auto& buffer : network_.buffers()) ranks_.replicas->broadcast(buffer.value, 0);
}

std::vector<networks::NamedParameter> Trainer::remembered_values() const {
  std::vector<networks::NamedParameter> values;
  for (const std::vector<at::Tensor>& row : update_.optimizer->state())
    for (const at::Tensor& tensor : row)
      values.push_back({"optimizer." + std::to_string(values.size()), tensor});
  for (const at::Tensor& own : update_.reducer->held().parameters) values.push_back({"server", own});
  for (auto& value : loss_scale_->state()) values.push_back(std::move(value));
  return values;
}

std::vector<networks::NamedParameter> Trainer::state() const {
  std::vector<networks::NamedParameter> state;
  if (!ranks_.position.is_server()) state = network_.state();
  for (auto& remembered : remembered_values()) state.push_back(std::move(remembered));
  return state;
}

void Trainer::restore(const std::vector<networks::NamedParameter>& state, std::int64_t steps) {
  const at::NoGradGuard no_grad;
  if (!ranks_.position.is_server()) networks::load_values(network_, state);
  for (const auto& remembered : remembered_values()) {
    const auto found = std::find_if(state.begin(), state.end(),
                                    [&](const auto& each) { return each.name == remembered.name; });
    if (found == state.end() || found->value.sizes() != remembered.value.sizes())
      throw InternalError("the saved state has no " + remembered.name + " of this shape");
    at::Tensor(remembered.value).copy_(found->value);
  }
  update_.optimizer->restore_step(steps);
  steps_done_ = steps;
}

StepTimes Trainer::take_times() {
  StepTimes none;
  if (times_.on_core) none.on_core.emplace();
  none.device = times_.device;
  if (times_.device) times_.passed = times_.device->take();
  return std::exchange(times_, none);
}

MakeUpdate replay_of(const experiments::Run& run, std::function<std::vector<ServerEvents>()> logs) {
  return [run, logs = std::move(logs)](const networks::Network& network) {
    const auto factors =
        group_factors(run.optimizer, network.parameter_values(), network.parameter_factors());
    return replayed_update(run.optimizer, network, factors, run.strategy, logs);
  };
}

networks::Network build_stage(const ResolvedRun& resolved, const models::InputShape& input,
                              const Connections& ranks, at::ScalarType dtype) {
  const experiments::Run& run = resolved.run;
  const models::Graph graph = resolved.graph(input);
  return first_network(resolved, input, {run.seed, dtype, ranks.device},
                       layers_of_stage(run.strategy, ranks.position.is_server() ? 0 : ranks.position.stage,
                                       graph.nodes.size()),
                       ranks.mesh.tensor > 1 ? std::optional(ranks.position.part) : std::nullopt);
}

}  // namespace trainyard::runner
