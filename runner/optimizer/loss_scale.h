// Loss scale for float16 layers, with the algorithm and defaults of PyTorch's `torch.amp.GradScaler`.
// Source: Micikevicius et al., "Mixed precision training", ICLR 2018, section 3.2.
// - The loss is multiplied by the scale, so that small gradients are not zero in float16. The reduced
//   gradients are divided by the scale.
// - If a gradient is not finite, the step changes nothing and the scale is halved. After 2000 finite steps in
//   a row the scale is doubled.
// - Everything is computed on the device, without host–device synchronisation.
//
// One step: scaled(loss).backward(); reduction; unscale(gradients, …); update of the parameters with
// `found_inf`; update().
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
  std::int64_t growth_interval = 2000;  // steps in a row with finite gradients
};

struct ScaledSteps {
  double loss_scale = 0;           // of the next step
  std::int64_t skipped_steps = 0;  // steps with gradients that are not finite, since the last call
};

// This base class has the scale 1, for a precision that needs none. Its functions do nothing.
class LossScale {
 public:
  using SumOverAll = std::function<void(const at::Tensor&)>;

  virtual ~LossScale() = default;
  virtual at::Tensor scaled(const at::Tensor& loss) const { return loss; }
  // Divides `gradients` in place and checks that all gradients of the model are finite.
  // - `gradients` are float32, dense or coalesced. There may be none.
  // - `sum_over_all` sums a float32 [] over all ranks with other gradients of the model. It is called at most
  //   once.
  virtual void unscale(const std::vector<at::Tensor>& /*gradients*/, const SumOverAll& /*sum_over_all*/) {}
  // The result of the last `unscale`: float32 [], 1 if the step must be skipped, else 0. Empty if no step is
  // ever skipped.
  virtual std::optional<at::Tensor> found_inf() const { return std::nullopt; }
  // Sets the scale of the next step. Call it once per step, after the update of the parameters.
  virtual void update() {}
  // The tensors that are kept between steps, not copied.
  virtual std::vector<networks::NamedParameter> state() const { return {}; }
  // The scale, and the number of steps skipped since the last call. Waits for the device.
  virtual std::optional<ScaledSteps> take_steps() { return std::nullopt; }
};

std::unique_ptr<LossScale> dynamic_loss_scale(at::Device device, const LossScaling& scaling = {});

}  // namespace trainyard::runner
