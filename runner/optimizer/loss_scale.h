// Dynamic loss scaling, for training with float16 layers: Micikevicius et al., «Mixed precision training»,
// ICLR 2018, section 3.2, as PyTorch's `torch.amp.GradScaler` does it, with its defaults. The loss is
// multiplied, so that small gradients are no zeros in float16, and the reduced gradients are divided by the
// same number; where one of them is not finite the step changes nothing and the scale is halved; after 2000
// sound steps in a row it is doubled. All of it is computed on the device, which nobody waits for.
//
// One step:  scaled(loss).backward(); reduction; unscale(gradients, …); update of the parameters, told
// `found_inf`; update().
#pragma once

#include <cstdint>
#include <functional>
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
  std::int64_t skipped_steps = 0;  // whose gradients were not finite
};

class LossScale {
 public:
  explicit LossScale(at::Device device, const LossScaling& scaling = {});

  at::Tensor scaled(const at::Tensor& loss) const;

  // Divides `gradients` (float32, may be none) in place and finds whether one of the whole model is not
  // finite: `sum_over_all` adds up a float32 [] over all that have others of them; it is called once.
  void unscale(const std::vector<at::Tensor>& gradients,
               const std::function<void(const at::Tensor&)>& sum_over_all);
  // Of the last `unscale`: float32 [], 1 where the step is to be skipped, else 0.
  const at::Tensor& found_inf() const { return found_inf_; }
  // The scale of the next step; once a step, after the parameters were updated.
  void update();

  // What goes on from step to step: its own tensors.
  std::vector<networks::NamedParameter> state() const;

  // These wait for the device.
  double value() const;
  std::int64_t take_skipped_steps();  // since the last call

 private:
  LossScaling scaling_;
  at::Tensor scale_;          // float32 []
  at::Tensor sound_steps_;    // int32 []: in a row, since the scale changed
  at::Tensor found_inf_;      // float32 []
  at::Tensor skipped_steps_;  // float64 []
};

}  // namespace trainyard::runner
