// One rank's training: the layers of its stage, their gradients' reducer and optimizer, driven a step at a
// time. What the rank does in a step is its schedule's list of actions; nothing here asks which strategy it
// is.
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
#include "runner/gradients/reducer.h"
#include "runner/optimizer/loss_scale.h"
#include "runner/optimizer/optimizer.h"
#include "runner/schedule/schedule.h"
#include "runner/trainer/executor.h"
#include "runner/trainer/mesh.h"
#include "runner/trainer/step_runner.h"

namespace trainyard::runner {

// What a rank trains with, as it follows from the run and the rank's place in the mesh.

// The layers of its stage, on its device. UserError where the strategy does not fit the model.
networks::Network build_stage(const experiments::Run& run, const models::InputShape& input,
                              const Connections& ranks, at::ScalarType dtype);

// From the gradients of `network` on each replica to its next parameters. Where replicas share memory, each
// does so for its slices (runner/gradients/sharded_reducer.h). Collective.
struct Update {
  std::unique_ptr<Reducer> reducer;
  std::unique_ptr<Optimizer> optimizer;
};
Update make_update(const experiments::Optimizer& settings, const networks::Network& network,
                   Communicator& replicas);

int micro_batches_of(const experiments::Run& run);

// How its stage trains in a step: as many turns as gradients accumulate over. And how it evaluates.
std::vector<Action> training_actions(const experiments::Run& run, const Connections& ranks);
std::vector<Action> forward_actions(const Connections& ranks, int micro_batches);

class Trainer {
 public:
  // Called after each step with the number of steps done and the sums so far.
  using StepDone = std::function<void(std::int64_t step, const MetricSums&)>;

  // Builds the stage of `run` that `ranks` says this is; `ranks` must outlive it. UserError where the
  // strategy does not fit the model.
  Trainer(const experiments::Run& run, const models::InputShape& input, const Connections& ranks,
          at::ScalarType dtype = at::kFloat);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains on this replica's share of a global batch, which may be empty. The gradient is that of Σ over
  // replicas of (summed loss / divisor). Collective: all ranks make every step.
  void step(const Dataset& data, const LocalBatch& local);
  // Of `places` (int64 [part]) alone.
  void step(const Dataset& data, const at::Tensor& places, std::int64_t divisor) {
    step(data, {places, divisor, places});
  }
  void set_learning_rate(double learning_rate);

  // Replays steps as such graphs, or computes each step if `make` is empty. On a GPU the trainer replays
  // without being asked if it can (runner/trainer/step_runner.h).
  void capture_steps(const MakeCudaGraph& make);
  // Why steps are computed one by one, for people. Empty if they are replayed.
  std::string why_not_captured() const { return steps_->why_not_captured(); }

  // All steps of an epoch, in its order and with its augmentation.
  void train_epoch(const Dataset& data, std::int64_t epoch, const Sampler& sampler, const StepDone& done);

  // This replica's part of `data`, each sample once, shorter ones first, with replica 0's running statistics.
  // Collective.
  MetricSums evaluate(const Dataset& data, const Sampler& sampler, const StepDone& done);

  // The tokens that the network finds likeliest after those of `inputs` {source, target so far}: int64
  // [batch], on every stage. Collective over the stages of a replica.
  at::Tensor next_tokens(const networks::Activations& inputs);

  // What `step` added up since the last call; stages before the last have no metrics.
  MetricSums take_metrics();
  // `step`'s seconds since the last call.
  StepTimes take_times();
  // The loss scale and the steps that were skipped since the last call. Empty if the precision needs no
  // scale.
  std::optional<ScaledSteps> take_scaled_steps() { return loss_scale_->take_steps(); }
  // Begins loss scaling anew, with other settings than PyTorch's.
  void scale_loss(const LossScaling& scaling) { loss_scale_ = dynamic_loss_scale(ranks_.device, scaling); }
  void measure_seconds_on_core() { times_.on_core.emplace(); }

  // All that further steps depend on and that is no function of the run: parameters, running statistics,
  // what the optimizer remembers and the loss scale. `restore` puts such values in, as after `steps` steps.
  // InternalError where they are of another stage or optimizer.
  std::vector<networks::NamedParameter> state() const;
  std::int64_t steps_done() const { return steps_done_; }
  void restore(const std::vector<networks::NamedParameter>& state, std::int64_t steps);

  const Task& task() const { return *task_; }
  const networks::Network& network() const { return network_; }  // of this stage
  // Of the last step, of all parameters of this stage. Collective over the replicas.
  std::vector<at::Tensor> gradients() { return update_.reducer->whole_gradients(); }

 private:
  // Training or evaluation: the loss goes into `sums`, its gradient is that of the sum · loss factor.
  StageWork work_on(const Dataset& data, const StepInput& input, int micro_batches, MetricSums& sums) const;
  void compute(const Dataset& data, const StepInput& input, StepTimes& times);
  void count(MetricSums& sums, const Dataset& data, const at::Tensor& places) const;
  std::vector<networks::NamedParameter> remembered_values() const;  // of optimizer and loss scale
  void sum_over_whole_model(const at::Tensor& own) const;
  void clip_whole_model();
  void take_running_statistics();

  const experiments::Run run_;
  const Connections& ranks_;
  const Task* task_;
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
  std::shared_ptr<DeviceTimeline> timeline_;  // of a GPU; also in `times_`
  StepTimes times_;
  std::unique_ptr<StepRunner> steps_;
};

}  // namespace trainyard::runner
