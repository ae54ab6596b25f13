// Gradients of which only some rows are there (`models/networks/layer_kernels.h`), beside whole ones: what
// training does with a gradient whichever of the two it is.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace trainyard::runner {

// `gradient` with each row once, ascending, where it holds rows; a whole one as it is.
at::Tensor coalesced(const at::Tensor& gradient);

// The numbers that are there, in the memory of `gradient`: all others are zero. It has each row once.
at::Tensor numbers_of(const at::Tensor& gradient);
std::vector<at::Tensor> numbers_of(const std::vector<at::Tensor>& gradients);

// All of it, zeros where there is no row.
at::Tensor whole(const at::Tensor& gradient);

// The same where `gradient`, which has each row once, has more than three quarters of the rows: to exchange
// and add up numbers then costs less than to look which of them are there. Else `gradient` as it is.
at::Tensor densify_if_full(const at::Tensor& gradient);

// `whole(gradient)` written into `to`, of the same shape.
void write_whole(const at::Tensor& gradient, const at::Tensor& to);

}  // namespace trainyard::runner
