// Runs the actions of one stage, whatever the schedule: computes micro-batches forward and backward and
// exchanges activations and their gradients with the stages before and after. A single stage is a pipeline of
// one. Sends do not block, receives are posted ahead, and a micro-batch without samples is no work on any
// stage.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/data/dataset.h"
#include "runner/device/step_times.h"
#include "runner/gradients/reducer.h"
#include "runner/schedule/schedule.h"
#include "runner/trainer/stage_messages.h"

namespace trainyard::runner {

// What is computed in one go through the actions. The functions are given the samples of a micro-batch.
struct StageWork {
  std::vector<at::Tensor> samples;   // of each micro-batch: int64 [batch]
  networks::ForwardContext context;  // for all of them; `samples` is filled in
  // Asked by the first stage for inputs and by the last for targets, at once where they are one stage.
  std::function<Batch(const at::Tensor& samples, bool inputs, bool targets)> gather;
  // Asked by the last stage, where it is set: the positions of the targets that weigh anything. Outputs and
  // targets are then of these only.
  at::Tensor (*positions)(const at::Tensor& targets) = nullptr;
  // Asked by the last stage: the loss, whose gradient is taken in training.
  std::function<at::Tensor(const at::Tensor& samples, const networks::Activations& outputs,
                           const at::Tensor& targets)>
      loss;
  // What the sizes of activations depend on besides the model: equal for two micro-batches only if theirs
  // are.
  std::function<std::vector<std::int64_t>(const at::Tensor&)> shape;
};

class Executor {
 public:
  // `network` and `stages`, which connects the stages of this replica in their order, must outlive it. The
  // layers compute in `precision`.
  Executor(const networks::Network& network, Communicator& stages, std::string precision)
      : network_(network),
        stages_(stages),
        precision_(std::move(precision)),
        sent_(stages.capabilities().ordered_messages),
        received_(stages.capabilities().ordered_messages) {}

  // Takes all `actions`. Where there are backwards among them, `reducer` has gradients prepared before, and
  // is told of the last one; returns whether there was any. Collective over the stages.
  bool run(const std::vector<Action>& actions, const StageWork& work, Reducer& reducer, StepTimes& times);

 private:
  friend class ExecutorRun;
  const networks::Network& network_;
  Communicator& stages_;
  std::string precision_;
  Descriptions sent_, received_;  // of activations
};

}  // namespace trainyard::runner
