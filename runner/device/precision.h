// The precision that a run's networks compute in.
//   "float32"   on GPUs too: no product is rounded to TensorFloat-32.
//   "tf32"      products of matrices and convolutions round their factors to TensorFloat-32; GPUs only.
//   "bfloat16"  mixed, as PyTorch's autocast does it: products of matrices and convolutions take and give
//               bfloat16; parameters, their gradients, the loss and the optimizer stay float32.
//   "float16"   mixed in the same way, and the loss is scaled (runner/optimizer/loss_scale.h). LSTM layers
//   stay float32 on
//               a CPU, where LibTorch has none in float16.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "models/networks/network.h"

namespace trainyard::runner {

// Once in a process, before its first layer computes. UserError where `device` cannot.
void use_precision(const std::string& precision, const at::Device& device);

// The network's outputs, computed in `precision` where its inputs lie.
networks::Activations forward_in(const std::string& precision, const networks::Network& network,
                                 const networks::Activations& inputs,
                                 const networks::ForwardContext& context);

// An output as the loss and the metrics take it: half precision becomes float32.
at::Tensor for_loss(const at::Tensor& output);

// Whether gradients would be lost in it without a loss scale.
bool needs_loss_scale(const std::string& precision);
// That of the parity gate: small enough that its few steps do not overflow. 1 where none is needed.
double probed_loss_scale(const std::string& precision);

}  // namespace trainyard::runner
