// The precision that a run's networks compute in. "bfloat16" is mixed, as PyTorch's autocast does it:
// products of matrices and convolutions take and give bfloat16, parameters, their gradients, the loss and the
// optimizer stay float32.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "models/networks/network.h"

namespace trainyard::runner {

// The network's outputs, computed in `precision`: "float32" or "bfloat16".
networks::Activations forward_in(const std::string& precision, const networks::Network& network,
                                 const networks::Activations& inputs,
                                 const networks::ForwardContext& context);

// An output as the loss and the metrics take it: bfloat16 becomes float32.
at::Tensor for_loss(const at::Tensor& output);

}  // namespace trainyard::runner
