// Batch normalisation: Ioffe, Szegedy, «Batch normalization», ICML 2015, algorithm 1, with PyTorch's momentum
// and running variance (n − 1).
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "models/networks/initial_weights.h"
#include "models/networks/layer_kinds.h"

namespace trainyard::networks {

namespace {

constexpr double momentum = 0.1;
constexpr double epsilon = 1e-5;

struct Normalisation {
  at::Tensor weight, bias, mean, variance;  // [channel]; the last two running

  // Statistics of the input alone, or those kept by training.
  at::Tensor local(const at::Tensor& x, bool training) const {
    return at::batch_norm(x, weight, bias, mean, variance, training, momentum, epsilon, true);
  }

  void keep(const at::Tensor& batch_mean, const at::Tensor& batch_variance, const at::Tensor& count) const {
    const at::NoGradGuard no_grad;
    at::Tensor(mean).lerp_(batch_mean.to(mean.dtype()), momentum);
    at::Tensor(variance).lerp_((batch_variance * (count / (count - 1))).to(variance.dtype()), momentum);
  }

  // Statistics of all replicas: Σx, Σx² and the count, summed in float64. An empty input takes part.
  at::Tensor synchronised(const at::Tensor& x, const ForwardContext& context) const {
    const std::int64_t channels = x.size(1);
    const auto sum = [](const at::Tensor& values) { return values.sum({0, 2, 3}, false, at::kDouble); };
    const at::Tensor own_count = at::full({1}, x.numel() / channels, x.options().dtype(at::kDouble));
    const at::Tensor sums = context.sum_over_replicas(at::cat({sum(x), sum(x.square()), own_count}));
    const at::Tensor count = sums.slice(0, 2 * channels).detach();
    const at::Tensor batch_mean = sums.slice(0, 0, channels) / count;
    const at::Tensor batch_variance =
        (sums.slice(0, channels, 2 * channels) / count - batch_mean.square()).clamp_min(0);
    keep(batch_mean, batch_variance, count);
    const at::Tensor scale = weight * (batch_variance + epsilon).rsqrt();
    const at::Tensor shift = bias - batch_mean * scale;
    const auto of_channel = [&](const at::Tensor& t) { return t.to(x.dtype()).view({1, channels, 1, 1}); };
    return x * of_channel(scale) + of_channel(shift);
  }
};

}  // namespace

Layer batch_norm2d(const models::Layer& row, const Initialisation& start) {
  const std::int64_t channels = row.sizes.at("channels");
  InitialWeights weights(row.path, start);
  const NamedParameter weight = weights.constant("weight", {channels}, 1);
  const NamedParameter bias = weights.constant("bias", {channels}, 0);
  const NamedParameter mean{row.path + ".running_mean", at::zeros({channels}, start.options())};
  const NamedParameter variance{row.path + ".running_var", at::ones({channels}, start.options())};
  const Normalisation normalisation{weight.value, bias.value, mean.value, variance.value};
  return {row.path,
          row.kind,
          {weight, bias},
          {mean, variance},
          [normalisation](const Activations& inputs, const ForwardContext& context) {
            const bool synchronised = context.training && context.sum_over_replicas;
            Activations outputs = inputs;
            outputs.front() = synchronised ? normalisation.synchronised(inputs.front(), context)
                                           : normalisation.local(inputs.front(), context.training);
            return outputs;
          }};
}

}  // namespace trainyard::networks
