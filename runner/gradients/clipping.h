// Gradient clipping by the global norm of all gradients of a model, across all stages.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace trainyard::runner {

// Scales `gradients` in place so that the L2 norm of the model's gradients is at most `max_norm`.
// - The factor is min(1, max_norm / (norm + 1e-6)), as in `torch.nn.utils.clip_grad_norm_`.
// - `sum_over_all` sums the squares of `gradients` over all ranks of the model. It is called once.
// - `counted`: those of `gradients` whose squares this rank adds, if other ranks add the others.
// - Returns the norm before clipping. If it is not finite, the gradients become not finite.
double clip_gradients(const std::vector<at::Tensor>& gradients, double max_norm,
                      const std::function<double(double)>& sum_over_all,
                      const std::optional<std::vector<at::Tensor>>& counted = {});

// The same without host–device synchronisation: the norm stays on `device`, like the gradients.
// `sum_over_all` sums a float64 [] there.
void clip_without_sync(const std::vector<at::Tensor>& gradients, double max_norm, at::Device device,
                       const std::function<void(const at::Tensor&)>& sum_over_all,
                       const std::optional<std::vector<at::Tensor>>& counted = {});

}  // namespace trainyard::runner
