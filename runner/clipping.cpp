#include "runner/clipping.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace trainyard::runner {

namespace {

double sum_of_squares(const std::vector<at::Tensor>& gradients) {
  if (gradients.empty()) return 0;
  return at::stack(at::_foreach_norm(gradients, 2)).to(at::kDouble).square_().sum().item<double>();
}

}  // namespace

double clip_gradients(const std::vector<at::Tensor>& gradients, double max_norm,
                      const std::function<double(double)>& sum_over_stages) {
  const at::NoGradGuard no_grad;
  const double norm = std::sqrt(sum_over_stages(sum_of_squares(gradients)));
  const double factor = max_norm / (norm + 1e-6);
  const bool within = factor >= 1;  // not so where the norm is NaN
  if (!within && !gradients.empty()) at::_foreach_mul_(gradients, factor);
  return norm;
}

}  // namespace trainyard::runner
