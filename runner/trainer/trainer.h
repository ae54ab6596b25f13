// Trains the part of one rank, step by step: the layers of its stage, the gradients' reducer, the optimizer.
// A step executes the schedule's list of actions. Nothing here depends on the name of the strategy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "experiments/run/run.h"
#include "models/networks/network.h"
#include "runner/data/dataset.h"
#include "runner/data/sampler.h"
#include "runner/data/task.h"
#include "runner/device/step_times.h"
#include "runner/optimizer/loss_scale.h"
#include "runner/optimizer/replayed_servers.h"
#include "runner/optimizer/update.h"
#include "runner/schedule/schedule.h"
#include "runner/trainer/executor.h"
#include "runner/trainer/mesh.h"
#include "runner/trainer/resolved_run.h"
#include "runner/trainer/step_runner.h"

namespace trainyard::runner {

// The layers of the rank's stage, on its device. UserError if the strategy does not fit the model.
networks::Network build_stage(const ResolvedRun& resolved, const models::InputShape& input,
                              const Connections& ranks, at::ScalarType dtype);

using MakeUpdate = std::function<Update(const networks::Network&)>;

// The update of a run of asynchronous servers in one process, from their logs (runner/optimizer/replayed_servers.h).
MakeUpdate replay_of(const experiments::Run& run, std::function<std::vector<ServerEvents>()> logs);

class Trainer {
 public:
  // Called after each step with the number of steps done and the sums so far.
  using StepDone = std::function<void(std::int64_t step, const MetricSums&)>;

  // Builds this rank's stage of the run. `ranks` must outlive it. UserError if the strategy does not fit the
  // model. `dtype`: of the parameters, if it is not that of the run's precision. `make_update`: if the update is not that of
  // the strategy.
  Trainer(const ResolvedRun& resolved, const models::InputShape& input, const Connections& ranks,
          std::optional<at::ScalarType> dtype = {}, const MakeUpdate& make_update = {});
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains on this replica's share of a global batch, which may be empty. The gradient is the gradient of
  // Σ over replicas of (summed loss / divisor). All parameters are whole afterwards, except on servers.
  // Collective: all ranks call it for every step.
  void step(const Dataset& data, const LocalBatch& local);
  // The share has only the samples `indices`, int64 [part].
  void step(const Dataset& data, const at::Tensor& indices, std::int64_t divisor) {
    step(data, {indices, divisor, indices});
  }
  void set_learning_rate(double learning_rate);

  // Runs steps as these graphs, or computes each step if `make` is empty. The constructor has already chosen
  // CUDA graphs on a GPU if they are possible (runner/trainer/step_runner.h).
  void capture_steps(const MakeCudaGraph& make);
  // Why steps are computed one by one, as a text for users. Empty if they are replayed.
  std::string why_not_captured() const { return steps_->why_not_captured(); }

  // All steps of an epoch, in its order and with its augmentation.
  void train_epoch(const Dataset& data, std::int64_t epoch, const Sampler& sampler, const StepDone& done);

  // Evaluates this replica's part of `data`: each sample once, shorter ones first, with the running
  // statistics of replica 0. Collective.
  MetricSums evaluate(const Dataset& data, const Sampler& sampler, const StepDone& done);

  // The most likely next tokens for `inputs` {source, target so far}: int64 [batch], on every stage.
  // Collective over the stages of a replica.
  at::Tensor next_tokens(const networks::Activations& inputs);

  // The log of an asynchronous server since the last call.
  ServerLog take_server_log() { return update_.order->take_log(); }

  // The sums of `step` since the last call. Only the last stage has metrics; all its parts have the same ones.
  MetricSums take_metrics() { return metrics_.take(); }
  // The seconds of `step` since the last call, and of pipelines on CPUs the parts of one step of epoch 2, or of 1 if
  // it is the only one.
  StepTimes take_times();
  // The loss scale and the steps that were skipped since the last call. Empty if the precision needs no
  // scale.
  std::optional<ScaledSteps> take_scaled_steps() { return loss_scale_->take_steps(); }
  // The bytes of the tensors of this rank in its first step. Empty before it.
  const std::optional<HeldBytes>& held() const { return held_; }
  // Restarts loss scaling with settings that differ from PyTorch's.
  void scale_loss(const LossScaling& scaling) { loss_scale_ = dynamic_loss_scale(ranks_.device, scaling); }
  void measure_seconds_on_core() { times_.on_core.emplace(); }

  // The state that later steps depend on: parameters, running statistics, optimizer state and loss scale.
  // `restore` sets it as after `steps` steps. InternalError if it belongs to another stage or optimizer.
  std::vector<networks::NamedParameter> state() const;
  std::int64_t steps_done() const { return steps_done_; }
  void restore(const std::vector<networks::NamedParameter>& state, std::int64_t steps);

  const Task& task() const { return resolved_.task; }
  const networks::Network& network() const { return network_; }  // of this stage
  // All gradients of this stage in the last step. Collective over the replicas.
  std::vector<at::Tensor> gradients() { return update_.reducer->whole_gradients(); }

 private:
  // For training and evaluation. The loss is added to `sums`.
  StageWork work_on(const Dataset& data, const StepInput& input, int micro_batches, MetricSums& sums) const;
  void take_step(const Dataset& data, const LocalBatch& local);
  void exchange_parts(networks::ForwardContext& context) const;
  void compute(const Dataset& data, const StepInput& input, StepTimes& times);
  void count(MetricSums& sums, const Dataset& data, const at::Tensor& indices) const;
  std::int64_t recorded_step(std::int64_t epoch, std::int64_t steps) const;  // from 0; −1: none in this epoch
  std::vector<networks::NamedParameter> remembered_values() const;           // of optimizer and loss scale
  void sum_over_whole_model(const at::Tensor& own) const;
  void divide_by_weight();
  std::optional<std::vector<at::Tensor>> counted_gradients() const;
  void clip_whole_model();
  void take_running_statistics();

  const ResolvedRun resolved_;
  const experiments::Run& run_;
  const Connections& ranks_;
  networks::Network network_;
  Update update_;
  std::unique_ptr<LossScale> loss_scale_;
  Executor executor_;
  std::vector<Action> training_;    // of this stage, in a step
  std::vector<Action> evaluation_;  // of this stage, in a batch
  std::vector<Action> inference_;   // of this stage, in one micro-batch
  std::optional<double> learning_rate_;
  std::int64_t steps_done_ = 0;
  MetricSums metrics_;
  std::optional<HeldBytes> held_;
  at::Tensor step_weight_;                    // double []: of a loss that is weighted
  std::shared_ptr<DeviceTimeline> timeline_;  // of a GPU; also in `times_`
  StepTimes times_;
  std::unique_ptr<StepRunner> steps_;
};

}  // namespace trainyard::runner
