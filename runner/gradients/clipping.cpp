#include "runner/gradients/clipping.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "models/networks/libtorch_private.h"
#include "runner/gradients/sparse_gradient.h"

namespace trainyard::runner {

namespace {

constexpr double least_norm = 1e-6;

at::Tensor squares_of(const std::vector<at::Tensor>& numbers) {
  return at::stack(libtorch::norms_of_each(numbers)).to(at::kDouble).square_().sum();
}

double sum_of_squares(const std::vector<at::Tensor>& numbers) {
  return numbers.empty() ? 0 : squares_of(numbers).item<double>();
}

}  // namespace

double clip_gradients(const std::vector<at::Tensor>& gradients, double max_norm,
                      const std::function<double(double)>& sum_over_all,
                      const std::optional<std::vector<at::Tensor>>& counted) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> numbers = numbers_of(gradients);
  const double norm = std::sqrt(sum_over_all(sum_of_squares(counted ? numbers_of(*counted) : numbers)));
  const double factor = max_norm / (norm + least_norm);
  const bool within = factor >= 1;  // false if the norm is NaN
  if (!within && !numbers.empty()) libtorch::multiply_each(numbers, factor);
  return norm;
}

void clip_without_sync(const std::vector<at::Tensor>& gradients, double max_norm, at::Device device,
                       const std::function<void(const at::Tensor&)>& sum_over_all,
                       const std::optional<std::vector<at::Tensor>>& counted) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor>& own = counted ? *counted : gradients;
  const at::Tensor squares =
      own.empty() ? at::zeros({}, at::TensorOptions(device).dtype(at::kDouble)) : squares_of(own);
  sum_over_all(squares);
  const at::Tensor factor = squares.sqrt().add_(least_norm).reciprocal_().mul_(max_norm).clamp_max_(1);
  if (!gradients.empty()) libtorch::multiply_each(gradients, factor.to(gradients.front().scalar_type()));
}

}  // namespace trainyard::runner
