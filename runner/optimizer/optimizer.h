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
#include "models/graph.h"

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

// `factors`: one per parameter; empty if all are 1. UserError for an unknown kind.
std::unique_ptr<Optimizer> make_optimizer(const experiments::Optimizer& settings,
                                          std::vector<at::Tensor> parameters,
                                          const std::vector<models::GroupFactors>& factors = {},
                                          const ZerosLike& zeros = zeros_like_each);

// The factors of the parameters, and 0 for the weight decay of those that `weight_decay_of` leaves out.
std::vector<models::GroupFactors> group_factors(const experiments::Optimizer& settings,
                                                const std::vector<at::Tensor>& parameters,
                                                std::vector<models::GroupFactors> factors);

// A step of the training, before it is taken.
struct StepPlace {
  std::int64_t epoch = 1;  // from 1
  std::int64_t step = 0;   // complete steps of this epoch
  std::int64_t steps = 1;  // of an epoch
  double done() const { return static_cast<double>((epoch - 1) * steps + step); }  // steps before it
};

// Schedule of the learning rate, after its warm-up.
// - constant
// - step: multiplied by schedule_factor after every schedule_epochs epochs (torch.optim.lr_scheduler.StepLR).
// - cosine: decreases towards learning_rate_min, which only the epoch after the last would reach (CosineAnnealingLR with
//   T_max = epochs and η_min = learning_rate_min; Loshchilov and Hutter 2017, equation 5, without restarts).
// - cosine-by-step: the same from step to step, with T_max = all steps after the warm-up.
struct LearningRateSchedule {
  const char* name;
  double (*factor)(const experiments::Run&, const StepPlace&);  // 1 to 0: of the part above learning_rate_min
  bool by_step = false;                                         // the rate changes within an epoch
};
const LearningRateSchedule& find_schedule(std::string_view name);  // UserError for an unknown name

// Learning rate of a step. It starts with the run's effective learning rate, or with its part in the warm-up.
double learning_rate_at(const LearningRateSchedule& schedule, const experiments::Run& run,
                        const StepPlace& place);

}  // namespace trainyard::runner
