// The sum of a tensor over all replicas as a step of autograd, for batch normalisation with synchronised
// statistics.
#pragma once

#include <ATen/core/Tensor.h>

#include "runner/communicator/communicator.h"

namespace trainyard::runner {

// Σ over ranks of `tensor` (any shape, equal on all). Its gradient is the sum of all ranks' gradients, since
// every rank's loss depends on every rank's tensor. Collective, and again in backward.
at::Tensor sum_over_ranks(const at::Tensor& tensor, Communicator& communicator);

}  // namespace trainyard::runner
