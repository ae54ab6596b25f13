#include "runner/clipping.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "runner/row_gradient.h"

namespace trainyard::runner {

namespace {

double sum_of_squares(const std::vector<at::Tensor>& numbers) {
  if (numbers.empty()) return 0;
  return at::stack(at::_foreach_norm(numbers, 2)).to(at::kDouble).square_().sum().item<double>();
}

}  // namespace

double clip_gradients(const std::vector<at::Tensor>& gradients, double max_norm,
                      const std::function<double(double)>& sum_over_stages) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> numbers = numbers_of(gradients);
  const double norm = std::sqrt(sum_over_stages(sum_of_squares(numbers)));
  const double factor = max_norm / (norm + 1e-6);
  const bool within = factor >= 1;  // not so where the norm is NaN
  if (!within && !numbers.empty()) at::_foreach_mul_(numbers, factor);
  return norm;
}

}  // namespace trainyard::runner
