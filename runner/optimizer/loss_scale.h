// Loss scale, for training with float16 layers: Micikevicius et al., "Mixed precision training", ICLR 2018,
// section 3.2, as PyTorch's `torch.amp.GradScaler` does it, with its defaults.
//
// The loss is multiplied by the scale, so that small gradients are not zero in float16. The reduced gradients
// are divided by the scale. If one of them is not finite, the step changes nothing and the scale is halved.
// After 2000 sound steps in a row the scale is doubled. All of it is computed on the device, and no step
// waits for a value.
//
// One step:  scaled(loss).backward(); reduction; unscale(gradients, …); update of the parameters, which is
// given `found_inf`; update().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/networks/network.h"

namespace trainyard::runner {

struct LossScaling {
  double initial = 65536;
  double growth = 2;
  double backoff = 0.5;
  std::int64_t growth_interval = 2000;  // sound steps in a row
};

struct ScaledSteps {
  double loss_scale = 0;           // that of the next step
  std::int64_t skipped_steps = 0;  // since the last question; their gradients were not finite
};

// The scale 1 of a precision that needs none: every function does nothing.
class LossScale {
 public:
  using SumOverAll = std::function<void(const at::Tensor&)>;

  virtual ~LossScale() = default;
  virtual at::Tensor scaled(const at::Tensor& loss) const { return loss; }
  // Divides `gradients` (float32, dense or with each row once, may be empty) in place and finds whether one
  // of the whole model is not finite. `sum_over_all` adds up a float32 [] over all ranks that have others of
  // the model's gradients; it is called at most once.
  virtual void unscale(const std::vector<at::Tensor>& /*gradients*/, const SumOverAll& /*sum_over_all*/) {}
  // The result of the last `unscale`: float32 [], 1 if the step is to be skipped, else 0. Nothing: no step is
  // skipped.
  virtual std::optional<at::Tensor> found_inf() const { return std::nullopt; }
  // Sets the scale of the next step. Called once per step, after the parameters were updated.
  virtual void update() {}
  // The tensors that pass from step to step, not copied.
  virtual std::vector<networks::NamedParameter> state() const { return {}; }
  // The scale, and the steps skipped since the last call. Waits for the device.
  virtual std::optional<ScaledSteps> take_steps() { return std::nullopt; }
};

std::unique_ptr<LossScale> dynamic_loss_scale(at::Device device, const LossScaling& scaling = {});

}  // namespace trainyard::runner
