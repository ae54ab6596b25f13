// The optimizers of a run, with the results of `torch.optim.SGD`, `Adam` and `AdamW`: one fused kernel a step
// over all parameters, and `sparse_update.h` for those of whose gradient only rows are there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "experiments/run/run.h"

namespace trainyard::runner {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Changes the parameters; `gradients` in their order, each in the memory layout of its parameter or sparse
  // with each row once. Where `found_inf` (float32 [], on their device) is 1 instead of 0 the step changes
  // nothing, as if it had not been.
  void step(const std::vector<at::Tensor>& gradients, const std::optional<at::Tensor>& found_inf = {}) {
    update(gradients, found_inf);
    synchronize();
  }
  // The two halves of it: this replica's work, and waiting for what others do to the parameters.
  virtual void update(const std::vector<at::Tensor>& gradients,
                      const std::optional<at::Tensor>& found_inf) = 0;
  virtual void synchronize() {}
  // Of the following steps; before the first call it is that of the settings.
  virtual void set_learning_rate(double learning_rate) = 0;
  // What it remembers of the steps so far, beside the parameters: its own tensors. A row for each thing that
  // is remembered, in a row a tensor for each parameter.
  virtual std::vector<std::vector<at::Tensor>> state() const = 0;
  // After values were put into those of `state`: so many steps were made.
  virtual void restore_step(std::int64_t /*steps*/) {}
};

// Zeros like each of some tensors: where an optimizer remembers something of each parameter. Such rows come
// first in its state, in the order in which they were asked for.
using ZerosLike = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;
std::vector<at::Tensor> zeros_like_each(const std::vector<at::Tensor>& tensors);

// UserError for an unknown kind, with those that exist.
std::unique_ptr<Optimizer> make_optimizer(const experiments::Optimizer& settings,
                                          std::vector<at::Tensor> parameters,
                                          const ZerosLike& zeros = zeros_like_each);

// The learning rate over a run. It changes between epochs only, as PyTorch's schedulers do where they are
// stepped once an epoch.

// Of all steps of `epoch` (from 1), starting from the run's effective learning rate:
// constant: that;
// step: times schedule_factor after every schedule_epochs epochs (torch.optim.lr_scheduler.StepLR);
// cosine: from that towards 0, which the epoch after the last would have (CosineAnnealingLR with T_max =
// epochs, η_min = 0; Loshchilov and Hutter 2017, equation 5, without restarts). UserError for an unknown
// schedule, with those that exist.
double learning_rate_at(const experiments::Run& run, std::int64_t epoch);

}  // namespace trainyard::runner
