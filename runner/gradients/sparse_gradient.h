// Functions for gradients that are sparse (some rows only, `models/networks/layer_kernels.h`) or dense.
// "Coalesced" means that each row occurs once, in ascending order.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace trainyard::runner {

// A sparse gradient coalesced. A dense gradient is returned unchanged.
at::Tensor coalesced(const at::Tensor& gradient);

// The stored values, as a view of the coalesced `gradient`. All other values are zero.
at::Tensor numbers_of(const at::Tensor& gradient);
std::vector<at::Tensor> numbers_of(const std::vector<at::Tensor>& gradients);

// `gradient` as a dense tensor.
at::Tensor whole(const at::Tensor& gradient);

// The coalesced `gradient` as a dense tensor if it has more than three quarters of the rows, else unchanged.
// With so many rows, dense values are cheaper to exchange and sum than sparse rows.
at::Tensor densify_if_full(const at::Tensor& gradient);

// Writes `whole(gradient)` to `to`, which has the same shape.
void write_whole(const at::Tensor& gradient, const at::Tensor& to);

}  // namespace trainyard::runner
