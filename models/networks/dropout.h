// Dropout that does not depend on how a batch is divided: what is dropped is a pure function of the stream
// (seed and layer path), the step, the sample's number and the place in the sample. Two replicas, or four
// micro-batches, drop what one batch would; so does a batch that is padded to another length.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace trainyard::networks {

// What a step's dropout is drawn from.
struct DropoutStream {
  std::uint64_t seed = 0;          // of seed and layer path
  std::int64_t step = 0;           // of the training
  double probability = 0;          // to be dropped, below 1; in steps of 2^-32
  at::Tensor step_on_device = {};  // int64 []: in place of `step` where it is defined
};

// [batch, …] like `like`: 0 where dropped, else 1 / (1 − probability). `samples` int64 [batch] holds the
// number of each sample. Of [batch, length, features], a place is (position, feature) whatever the length.
at::Tensor dropout_factors(const at::Tensor& like, const at::Tensor& samples, const DropoutStream& stream);

// The same numbers by operations on whole tensors, on the device of `like`: how it is done off the CPU.
at::Tensor dropout_factors_by_tensors(const at::Tensor& like, const at::Tensor& samples,
                                      const DropoutStream& stream);

}  // namespace trainyard::networks
