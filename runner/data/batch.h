// What one step eats.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "models/networks/layers.h"

namespace trainyard::runner {

struct Batch {
  networks::Activations inputs;  // what the first layer takes; the first dimension of each is the batch
  at::Tensor targets;            // what the task holds the network's output against
  at::Tensor samples;            // int64 [batch]: the number of each sample in its part of the data set
  std::int64_t size() const { return samples.size(0); }
};

}  // namespace trainyard::runner
