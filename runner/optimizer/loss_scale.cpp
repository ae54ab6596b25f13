#include "runner/optimizer/loss_scale.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace trainyard::runner {

LossScale::LossScale(at::Device device, const LossScaling& scaling)
    : scaling_(scaling),
      scale_(at::full({}, scaling.initial, at::TensorOptions(device).dtype(at::kFloat))),
      sound_steps_(at::zeros({}, at::TensorOptions(device).dtype(at::kInt))),
      found_inf_(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))),
      skipped_steps_(at::zeros({}, at::TensorOptions(device).dtype(at::kDouble))) {}

at::Tensor LossScale::scaled(const at::Tensor& loss) const {
  return loss * scale_;
}

void LossScale::unscale(const std::vector<at::Tensor>& gradients,
                        const std::function<void(const at::Tensor&)>& sum_over_all) {
  const at::NoGradGuard no_grad;
  found_inf_.zero_();
  if (!gradients.empty()) {
    const at::Tensor inverse = scale_.to(at::kDouble).reciprocal_().to(at::kFloat);
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf_, inverse);
  }
  sum_over_all(found_inf_);
  found_inf_.clamp_max_(1);  // several may have found some
}

void LossScale::update() {
  const at::NoGradGuard no_grad;
  skipped_steps_.add_(found_inf_);
  at::_amp_update_scale_(scale_, sound_steps_, found_inf_, scaling_.growth, scaling_.backoff,
                         scaling_.growth_interval);
}

std::vector<networks::NamedParameter> LossScale::state() const {
  return {{"loss_scale.value", scale_}, {"loss_scale.sound_steps", sound_steps_}};
}

double LossScale::value() const {
  return scale_.item<double>();
}

std::int64_t LossScale::take_skipped_steps() {
  const auto skipped = static_cast<std::int64_t>(skipped_steps_.item<double>());
  skipped_steps_.zero_();
  return skipped;
}

}  // namespace trainyard::runner
