#include "runner/gradients/sparse_gradient.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <ATen/ATen.h>

#include "models/networks/libtorch_private.h"

namespace trainyard::runner {

namespace {

bool ascend(const at::Tensor& rows) {
  const auto* row = rows.const_data_ptr<std::int64_t>();
  return std::adjacent_find(row, row + rows.numel(), std::greater_equal<>()) == row + rows.numel();
}

// Writes each byte of `to` once: the given rows, and zeros between them.
void write_rows(const at::Tensor& given, const at::Tensor& to) {
  const at::Tensor rows = libtorch::sparse_rows(given).contiguous(),
                   values = libtorch::sparse_values(given).contiguous();
  const auto* row = rows.const_data_ptr<std::int64_t>();
  const auto* from = static_cast<const std::byte*>(values.const_data_ptr());
  auto* const begin = static_cast<std::byte*>(to.mutable_data_ptr());
  const auto bytes = static_cast<std::size_t>(to.stride(0)) * to.element_size();
  std::byte* at = begin;
  for (std::int64_t i = 0; i < values.size(0); ++i) {
    std::byte* const place = begin + static_cast<std::size_t>(row[i]) * bytes;
    std::memset(at, 0, static_cast<std::size_t>(place - at));
    std::memcpy(place, from + static_cast<std::size_t>(i) * bytes, bytes);
    at = place + bytes;
  }
  std::memset(at, 0, static_cast<std::size_t>(begin + to.nbytes() - at));
}

}  // namespace

// Autograd drops the coalesced flag. To check the order of the rows is faster than to sort them again.
at::Tensor coalesced(const at::Tensor& gradient) {
  if (!gradient.is_sparse() || gradient.is_coalesced()) return gradient;
  return ascend(libtorch::sparse_rows(gradient).contiguous()) ? libtorch::marked_coalesced(gradient)
                                                              : gradient.coalesce();
}

at::Tensor numbers_of(const at::Tensor& gradient) {
  return gradient.is_sparse() ? libtorch::sparse_values(gradient) : gradient;
}

std::vector<at::Tensor> numbers_of(const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> numbers;
  numbers.reserve(gradients.size());
  for (const at::Tensor& gradient : gradients) numbers.push_back(numbers_of(gradient));
  return numbers;
}

at::Tensor whole(const at::Tensor& gradient) {
  return gradient.is_sparse() ? gradient.to_dense() : gradient;
}

at::Tensor densify_if_full(const at::Tensor& gradient) {
  if (!gradient.is_sparse()) return gradient;
  const at::Tensor values = libtorch::sparse_values(gradient);
  if (4 * values.size(0) <= 3 * gradient.size(0)) return gradient;
  at::Tensor to = at::empty(gradient.sizes(), values.options());
  write_whole(gradient, to);
  return to;
}

void write_whole(const at::Tensor& gradient, const at::Tensor& to) {
  if (!gradient.is_sparse()) {
    to.copy_(gradient);
    return;
  }
  const at::Tensor given = coalesced(gradient);
  if (to.is_cpu() && to.is_contiguous() && to.scalar_type() == given.scalar_type()) {
    write_rows(given, to);
  } else {
    to.zero_();
    to.index_copy_(0, libtorch::sparse_rows(given)[0], libtorch::sparse_values(given));
  }
}

}  // namespace trainyard::runner
