// LibTorch's private calls, each behind a function of ours. Only sources include this header. A call is
// private if its name begins with an underscore, or if it is a part of autograd, autocast or dispatch that
// LibTorch does not document. CONTRIBUTING.md, "Built on", says why each is needed. `tools/check-rooms`
// refuses names with an underscore elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace trainyard::libtorch {

// Kernels of torch.optim with `fused=True`: all parameters in one pass. If `found_inf` (float32 []) is 1,
// they change nothing.

// `velocity` is empty without momentum. `first`: the velocity begins with this gradient.
inline void fused_sgd(at::TensorList parameters, at::TensorList gradients, at::TensorList velocity,
                      double weight_decay, double momentum, double learning_rate, bool first,
                      const std::optional<at::Tensor>& found_inf) {
  at::_fused_sgd_(parameters, gradients, velocity, weight_decay, momentum, learning_rate, /*dampening=*/0,
                  /*nesterov=*/false, /*maximize=*/false, first, /*grad_scale=*/{}, found_inf);
}

struct AdamFactors {
  double learning_rate, beta1, beta2, weight_decay, epsilon;
};

// `decoupled`: AdamW.
inline void fused_adam(bool decoupled, at::TensorList parameters, at::TensorList gradients,
                       at::TensorList means, at::TensorList squares, at::TensorList steps,
                       const AdamFactors& factors, const std::optional<at::Tensor>& found_inf) {
  const auto update = [&](const auto& kernel) {
    kernel(parameters, gradients, means, squares, /*max_exp_avg_sqs=*/at::TensorList(), steps,
           factors.learning_rate, factors.beta1, factors.beta2, factors.weight_decay, factors.epsilon,
           /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/std::optional<at::Tensor>(), found_inf);
  };
  if (decoupled)
    update([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
  else
    update([](auto&&... arguments) { at::_fused_adam_(arguments...); });
}

// Lists of tensors in one kernel.
inline std::vector<at::Tensor> norms_of_each(at::TensorList tensors) {  // L2
  return at::_foreach_norm(tensors, 2);
}
inline void multiply_each(at::TensorList tensors, double factor) {
  at::_foreach_mul_(tensors, factor);
}
inline void multiply_each(at::TensorList tensors, const at::Tensor& factor) {
  at::_foreach_mul_(tensors, factor);
}
inline void divide_each(at::TensorList tensors, double divisor) {
  at::_foreach_div_(tensors, divisor);
}

// Loss scaling, as in torch.amp.GradScaler.

// Multiplies `gradients` by `inverse` (float32 []) and sets `found_inf` (float32 []) to 1 if one of their
// numbers is not finite.
inline void unscale_each(at::TensorList gradients, at::Tensor& found_inf, const at::Tensor& inverse) {
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, inverse);
}
inline void update_loss_scale(at::Tensor& scale, at::Tensor& sound_steps, const at::Tensor& found_inf,
                              double growth, double backoff, std::int64_t growth_interval) {
  at::_amp_update_scale_(scale, sound_steps, found_inf, growth, backoff, growth_interval);
}

// Sparse tensors (COO) with one sparse dimension: which rows, and their values, without a copy or a check.
inline at::Tensor sparse_rows(const at::Tensor& sparse) {  // int64 [1, rows]
  return sparse._indices();
}
inline at::Tensor sparse_values(const at::Tensor& sparse) {  // [rows, …]
  return sparse._values();
}
// `sparse` has each row once, ascending.
inline at::Tensor marked_coalesced(const at::Tensor& sparse) {
  return sparse._coalesced_(true);
}
// Of `sizes`, with each of `rows` once, ascending.
inline at::Tensor sparse_tensor(const at::Tensor& rows, const at::Tensor& values, at::IntArrayRef sizes) {
  return marked_coalesced(
      at::_sparse_coo_tensor_unsafe(rows, values, sizes, values.options().layout(at::kSparse)));
}

// Moves the weights of one LSTM layer into one block of memory, in cuDNN's order.
inline void flatten_lstm_weights(at::TensorList weights, std::int64_t inputs, std::int64_t outputs) {
  constexpr std::int64_t lstm = 2, weights_of_layer = 4;  // cudnnRNNMode_t: CUDNN_LSTM
  at::_cudnn_rnn_flatten_weight(weights, weights_of_layer, inputs, lstm, outputs, /*proj_size=*/0,
                                /*num_layers=*/1, /*batch_first=*/true, /*bidirectional=*/false);
}

inline at::Generator cpu_generator(std::uint64_t seed) {
  return at::detail::createCPUGenerator(seed);
}

// Calls `then` whenever a backward has added to the gradient of `leaf`, while the result lives. Null if
// `leaf` does not require its gradient.
inline std::shared_ptr<void> on_gradient(const at::Tensor& leaf, std::function<void()> then) {
  namespace autograd = torch::autograd;
  auto accumulator = autograd::impl::grad_accumulator(leaf);
  if (!accumulator) return nullptr;
  const std::uintptr_t key = accumulator->add_post_hook(std::make_unique<autograd::utils::LambdaPostHook>(
      [then = std::move(then)](const autograd::variable_list& outputs, const autograd::variable_list&) {
        then();
        return outputs;
      }));
  auto* const node = accumulator.get();
  return {node, [key, accumulator = std::move(accumulator)](void*) { accumulator->del_post_hook(key); }};
}

// Autocast to `dtype` on `device` while it lives. After that everything is as before, and the casts of
// weights are dropped.
class Autocast {
 public:
  Autocast(at::DeviceType device, at::ScalarType dtype)
      : device_(device),
        enabled_(at::autocast::is_autocast_enabled(device)),
        dtype_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device, true);
    at::autocast::set_autocast_dtype(device, dtype);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool enabled_;
  at::ScalarType dtype_;
};

// The type that layers on a CPU compute in under autocast. Empty if there is none.
inline std::optional<at::ScalarType> cpu_autocast() {
  if (!at::autocast::is_autocast_enabled(at::kCPU)) return std::nullopt;
  return at::autocast::get_autocast_dtype(at::kCPU);
}

// No autocast on a CPU while it lives.
struct WithoutCpuAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::DispatchKey::AutocastCPU};
};

// Operators skip autograd while it lives: faster than NoGradGuard in a loop of small ones.
using WithoutAutograd = at::AutoDispatchBelowADInplaceOrView;

}  // namespace trainyard::libtorch
