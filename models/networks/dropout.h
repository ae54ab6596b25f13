// Dropout whose random numbers do not depend on the split of the batch.
// Each value is dropped or not as a pure function of the stream (seed and layer path), the step, the number
// of the sample, and the position in the sample. Replicas, micro-batches and padding therefore do not change
// the result.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace trainyard::networks {

// The random stream of a layer in one step.
struct DropoutStream {
  std::uint64_t seed = 0;          // made from seed and layer path
  std::int64_t step = 0;           // training step
  double probability = 0;          // to drop a value; below 1, in multiples of 2^-32
  at::Tensor step_on_device = {};  // int64 []: replaces `step` if it is defined
};

// The factors for `like` [batch, …]: 0 for a dropped value, otherwise 1 / (1 − probability).
// - `samples` int64 [batch]: the number of each sample in its data set.
// - For [batch, length, features] the factors do not depend on the length.
at::Tensor dropout_factors(const at::Tensor& like, const at::Tensor& samples, const DropoutStream& stream);

// The same factors by tensor operations on the device of `like`. Used on GPUs and in CUDA graphs.
at::Tensor dropout_factors_by_tensors(const at::Tensor& like, const at::Tensor& samples,
                                      const DropoutStream& stream);

// The factors for weights of attention, `like` [batch, …, queries, keys]. Each query of a sample has numbers of
// its own, so that the factors depend neither on the number of queries, below 2^20, nor on that of keys.
at::Tensor attention_dropout_factors(const at::Tensor& like, const at::Tensor& samples,
                                     const DropoutStream& stream);

}  // namespace trainyard::networks
