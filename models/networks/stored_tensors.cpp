#include "models/networks/stored_tensors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"

namespace trainyard::networks {

namespace {

[[noreturn]] void refuse(const models::StoredTensor& stored, const std::string& why) {
  throw InternalError("the stored tensor " + stored.name + " " + why);
}

// Items from the first to the last of the tensor. Empty if a number is negative or does not fit.
std::optional<std::int64_t> items_spanned(const models::StoredTensor& stored) {
  std::int64_t last = 0, values = 1;
  for (std::size_t i = 0; i < stored.sizes.size(); ++i) {
    const std::int64_t size = stored.sizes[i], stride = stored.strides[i];
    std::int64_t distance = 0;
    if (size < 0 || stride < 0 || __builtin_mul_overflow(values, size, &values)) return std::nullopt;
    if (size > 0 && (__builtin_mul_overflow(size - 1, stride, &distance) ||
                     __builtin_add_overflow(last, distance, &last)))
      return std::nullopt;
  }
  if (values == 0) return 0;
  if (__builtin_add_overflow(last, 1, &last)) return std::nullopt;
  return last;
}

// The bytes of `items` items from `stored.offset`, as a tensor.
at::Tensor copied_items(const models::StoredTensor& stored, std::int64_t items) {
  const at::ScalarType type = scalar_type(stored.dtype);
  const auto item = static_cast<std::int64_t>(c10::elementSize(type));
  const auto stored_items = static_cast<std::int64_t>(stored.storage->size()) / item;
  if (stored.offset < 0 || stored.offset > stored_items || items > stored_items - stored.offset) {
    refuse(stored, "goes beyond its storage of " + std::to_string(stored.storage->size()) + " bytes");
  }
  at::Tensor copy = at::empty({items}, type);
  if (items == 0) return copy;
  std::memcpy(copy.data_ptr(), stored.storage->data() + stored.offset * item,
              static_cast<std::size_t>(items * item));
  // a bool of another value than 0 and 1 is undefined behaviour
  return type == at::kBool ? copy.view(at::kByte).ne(0) : copy;
}

}  // namespace

at::ScalarType scalar_type(models::Dtype dtype) {
  using models::Dtype;
  switch (dtype) {
    case Dtype::float32:
      return at::kFloat;
    case Dtype::float64:
      return at::kDouble;
    case Dtype::bfloat16:
      return at::kBFloat16;
    case Dtype::float16:
      return at::kHalf;
    case Dtype::int64:
      return at::kLong;
    case Dtype::int32:
      return at::kInt;
    case Dtype::int16:
      return at::kShort;
    case Dtype::int8:
      return at::kChar;
    case Dtype::uint8:
      return at::kByte;
    case Dtype::boolean:
      return at::kBool;
  }
  throw InternalError("there is no such type of numbers");
}

models::Dtype dtype_of(at::ScalarType type) {
  using models::Dtype;
  switch (type) {
    case at::kFloat:
      return Dtype::float32;
    case at::kDouble:
      return Dtype::float64;
    case at::kBFloat16:
      return Dtype::bfloat16;
    case at::kHalf:
      return Dtype::float16;
    case at::kLong:
      return Dtype::int64;
    case at::kInt:
      return Dtype::int32;
    case at::kShort:
      return Dtype::int16;
    case at::kChar:
      return Dtype::int8;
    case at::kByte:
      return Dtype::uint8;
    case at::kBool:
      return Dtype::boolean;
    default:
      break;
  }
  throw InternalError(std::string("a graph cannot name the type ") + c10::toString(type));
}

at::Tensor make_tensor(const models::StoredTensor& stored, at::Device device) {
  if (!stored.storage) refuse(stored, "has no storage");
  if (stored.sizes.size() != stored.strides.size()) refuse(stored, "has not one stride for each size");
  const std::optional<std::int64_t> items = items_spanned(stored);
  if (!items) refuse(stored, "has a size or a stride that is negative or too large");

  const bool parameter = stored.role == models::StoredTensor::Role::parameter;
  const at::NoGradGuard no_grad;
  const at::Tensor copy = copied_items(stored, *items);
  at::Tensor tensor = at::empty({0}, copy.options());
  tensor.set_(copy.storage(), 0, stored.sizes, stored.strides);
  if (parameter && !tensor.is_non_overlapping_and_dense()) {
    if (tensor.numel() > *items) refuse(stored, "is a parameter that has values at the same place");
    tensor = tensor.clone(at::MemoryFormat::Contiguous);
  }
  tensor = tensor.to(device);
  if (!parameter || !stored.requires_grad) return tensor;
  if (!tensor.is_floating_point()) refuse(stored, "requires a gradient, but has integers");
  return tensor.requires_grad_();
}

}  // namespace trainyard::networks
