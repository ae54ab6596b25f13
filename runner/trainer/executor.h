// Executor: runs the actions of one stage for any schedule. It computes micro-batches forward and backward,
// and exchanges activations and their gradients with the previous and the next stage.
// - A single stage is a pipeline with one stage.
// - Sends do not block, and receives are posted ahead.
// - Micro-batches without samples are skipped on all stages.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/data/dataset.h"
#include "runner/device/precision.h"
#include "runner/device/step_times.h"
#include "runner/gradients/reducer.h"
#include "runner/schedule/schedule.h"
#include "runner/trainer/stage_messages.h"

namespace trainyard::runner {

// Data and functions for one run of the actions. `samples` in the functions are those of a micro-batch.
struct StageWork {
  std::vector<at::Tensor> samples;   // per micro-batch: sample indices, int64 [batch]
  networks::ForwardContext context;  // for all micro-batches; the executor sets `samples`
  // Called by the first stage for inputs, and by the last for targets. A single stage gets both in one call.
  std::function<Batch(const at::Tensor& samples, bool inputs, bool targets)> gather;
  // Called by the last stage if it is set: the positions of targets with a weight. Outputs and targets are
  // then computed for these positions only.
  at::Tensor (*positions)(const at::Tensor& targets) = nullptr;
  // Called by the last stage: the loss. In training its gradient is computed.
  std::function<at::Tensor(const at::Tensor& samples, const networks::Activations& outputs,
                           const at::Tensor& targets)>
      loss;
  // Everything that the sizes of activations depend on besides the model. See Dataset::shape.
  std::function<std::vector<std::int64_t>(const at::Tensor&)> shape;
};

class Executor {
 public:
  // `stages` connects the stages of this replica in their order. `network` and `stages` must outlive the
  // executor. The layers compute in `precision`.
  Executor(const networks::Network& network, Communicator& stages, const Precision& precision)
      : network_(network),
        stages_(stages),
        precision_(precision),
        sent_(stages.capabilities().ordered_messages),
        received_(stages.capabilities().ordered_messages) {}

  // Runs all `actions`. Returns true if a backward was among them. Call `prepare` of `reducer` before. The
  // executor calls its `last_backward`. Collective over the stages.
  bool run(const std::vector<Action>& actions, const StageWork& work, Reducer& reducer, StepTimes& times);

 private:
  friend class ExecutorRun;
  const networks::Network& network_;
  Communicator& stages_;
  const Precision& precision_;
  Descriptions sent_, received_;  // of activations
};

}  // namespace trainyard::runner
