#include "runner/optimizer/loss_scale.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "models/networks/libtorch_private.h"
#include "runner/gradients/sparse_gradient.h"

namespace trainyard::runner {

namespace {

class DynamicLossScale final : public LossScale {
 public:
  DynamicLossScale(at::Device device, const LossScaling& scaling)
      : scaling_(scaling),
        scale_(at::full({}, scaling.initial, at::TensorOptions(device).dtype(at::kFloat))),
        sound_steps_(at::zeros({}, at::TensorOptions(device).dtype(at::kInt))),
        found_inf_(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))),
        skipped_steps_(at::zeros({}, at::TensorOptions(device).dtype(at::kDouble))) {}

  at::Tensor scaled(const at::Tensor& loss) const override { return loss * scale_; }

  void unscale(const std::vector<at::Tensor>& gradients, const SumOverAll& sum_over_all) override {
    const at::NoGradGuard no_grad;
    found_inf_.zero_();
    if (!gradients.empty()) {
      const at::Tensor inverse = scale_.to(at::kDouble).reciprocal_().to(at::kFloat);
      libtorch::unscale_each(numbers_of(gradients), found_inf_, inverse);
    }
    sum_over_all(found_inf_);
    found_inf_.clamp_max_(1);  // the sum of several ranks may exceed 1
  }

  std::optional<at::Tensor> found_inf() const override { return found_inf_; }

  void update() override {
    const at::NoGradGuard no_grad;
    skipped_steps_.add_(found_inf_);
    libtorch::update_loss_scale(scale_, sound_steps_, found_inf_, scaling_.growth, scaling_.backoff,
                                scaling_.growth_interval);
  }

  std::vector<networks::NamedParameter> state() const override {
    return {{"loss_scale.value", scale_}, {"loss_scale.sound_steps", sound_steps_}};
  }

  std::optional<ScaledSteps> take_steps() override {
    const auto skipped = static_cast<std::int64_t>(skipped_steps_.item<double>());
    skipped_steps_.zero_();
    return ScaledSteps{scale_.item<double>(), skipped};
  }

 private:
  LossScaling scaling_;
  at::Tensor scale_;          // float32 []
  at::Tensor sound_steps_;    // int32 []: finite steps in a row since the scale changed
  at::Tensor found_inf_;      // float32 []
  at::Tensor skipped_steps_;  // float64 []
};

}  // namespace

std::unique_ptr<LossScale> dynamic_loss_scale(at::Device device, const LossScaling& scaling) {
  return std::make_unique<DynamicLossScale>(device, scaling);
}

}  // namespace trainyard::runner
