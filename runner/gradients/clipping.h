// Gradient clipping by the global norm: of all gradients of a model together, wherever its layers are.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace trainyard::runner {

// Scales `gradients` in place so that the L2 norm of all together is at most `max_norm`, with the results of
// `torch.nn.utils.clip_grad_norm_` (factor max_norm / (norm + 1e-6), where that is below 1).
// `sum_over_all` turns the sum of squares of `gradients` into that of the whole model's; it is called once.
// Returns the norm from before. A norm that is not finite makes the gradients not finite.
double clip_gradients(const std::vector<at::Tensor>& gradients, double max_norm,
                      const std::function<double(double)>& sum_over_all);

// The same without a look at the norm, which stays on `device`, where the gradients are: `sum_over_all` adds
// up a float64 [] there.
void clip_without_sync(const std::vector<at::Tensor>& gradients, double max_norm, at::Device device,
                       const std::function<void(const at::Tensor&)>& sum_over_all);

}  // namespace trainyard::runner
