// Optimizers with the results of `torch.optim.SGD`, `Adam` and `AdamW`, and learning rate schedules. One
// fused kernel per step updates all parameters. `sparse_update.h` updates those with sparse gradients.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "experiments/run/run.h"

namespace trainyard::runner {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates the parameters.
  // - `gradients` are in the order of the parameters. Each has the memory layout of its parameter, or is
  //   sparse and coalesced.
  // - `found_inf` is float32 [] on the device of the parameters. If it is 1, the step changes nothing.
  void step(const std::vector<at::Tensor>& gradients, const std::optional<at::Tensor>& found_inf = {}) {
    update(gradients, found_inf);
    synchronize();
  }
  // The two halves of `step`: the update by this replica, and waiting for the updates by other replicas.
  virtual void update(const std::vector<at::Tensor>& gradients,
                      const std::optional<at::Tensor>& found_inf) = 0;
  virtual void synchronize() {}
  // Sets the learning rate of the following steps. The first one is in the settings.
  virtual void set_learning_rate(double learning_rate) = 0;
  // The state tensors of the optimizer, not copied. One row per kind of state, such as the momentum, and in a
  // row one tensor per parameter.
  virtual std::vector<std::vector<at::Tensor>> state() const = 0;
  // Restores the number of steps, after values were copied into `state`.
  virtual void restore_step(std::int64_t /*steps*/) {}
};

// Allocates a row of state: zeros like each of some tensors. These rows come first in `state`, in the order
// of the calls.
using ZerosLike = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;
std::vector<at::Tensor> zeros_like_each(const std::vector<at::Tensor>& tensors);

// UserError for an unknown kind.
std::unique_ptr<Optimizer> make_optimizer(const experiments::Optimizer& settings,
                                          std::vector<at::Tensor> parameters,
                                          const ZerosLike& zeros = zeros_like_each);

// Schedule of the learning rate.
// - constant
// - step: multiplied by schedule_factor after every schedule_epochs epochs (torch.optim.lr_scheduler.StepLR).
// - cosine: decreases towards 0, which only the epoch after the last would reach (CosineAnnealingLR with
//   T_max = epochs and η_min = 0; Loshchilov and Hutter 2017, equation 5, without restarts).
struct LearningRateSchedule {
  const char* name;
  double (*factor)(const experiments::Run&, double done);  // after `done` complete epochs
};
const LearningRateSchedule& find_schedule(std::string_view name);  // UserError for an unknown name

// Learning rate of all steps of `epoch` (from 1). It starts with the run's effective learning rate.
double learning_rate_at(const LearningRateSchedule& schedule, const experiments::Run& run,
                        std::int64_t epoch);

}  // namespace trainyard::runner
