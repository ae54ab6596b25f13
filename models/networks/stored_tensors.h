// The tensors of an exported file as tensors of LibTorch.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/graph.h"

namespace trainyard::networks {

at::ScalarType scalar_type(models::Dtype dtype);

// A tensor on `device` with a copy of the stored values.
// - It shares memory with no other tensor. Those that shared `storage` in the file are separate.
// - Sizes and strides are those of the file. A parameter whose values are not side by side becomes
//   contiguous, because optimizers update parameters as blocks of memory.
// - A parameter is a leaf with `requires_grad` as stored. Buffers and constants never require a gradient.
// - `models/exported` has checked sizes, strides and offset. InternalError if it has values beyond its storage.
at::Tensor make_tensor(const models::StoredTensor& stored, at::Device device);

}  // namespace trainyard::networks
