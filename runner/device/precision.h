// The precision of a run's networks.
// - "float32": full float32, also on GPUs. Matrix products are never rounded to TensorFloat-32.
// - "float64": parameters, gradients, the loss and the optimizer too. It shows which differences are rounding.
// - "tf32": matrix products and convolutions round their inputs to TensorFloat-32. GPUs only.
// - "bfloat16": mixed precision like PyTorch's autocast. Matrix products and convolutions use bfloat16.
//   Parameters, gradients, the loss and the optimizer use float32.
// - "float16": mixed precision in the same way, with a loss scale (runner/optimizer/loss_scale.h). On a CPU,
//   LSTM layers use float32, because LibTorch has no float16 LSTM there.
#pragma once

#include <optional>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "models/networks/network.h"

namespace trainyard::runner {

struct Precision {
  const char* name;
  at::ScalarType parameters = at::kFloat;  // also of inputs
  std::optional<at::ScalarType> mixed_with{};
  bool tf32 = false;
  bool needs_loss_scale = false;  // without one, small gradients would become zero
  // The loss scale of the parity check: so small that its few steps do not overflow. 1 if none is needed.
  double probed_loss_scale() const { return needs_loss_scale ? 256 : 1; }
};
const Precision& find_precision(std::string_view name);  // UserError for an unknown name

// Call it once per process, before the first layer computes. UserError if `device` does not support it.
void use_precision(const Precision& precision, const at::Device& device);

// The network's outputs, computed in `precision` on the device of the inputs.
networks::Activations forward_in(const Precision& precision, const networks::Network& network,
                                 const networks::Activations& inputs,
                                 const networks::ForwardContext& context);

// `output` for the loss and the metrics: half precision becomes float32.
at::Tensor for_loss(const at::Tensor& output);

}  // namespace trainyard::runner
