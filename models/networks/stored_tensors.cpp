#include "models/networks/stored_tensors.h"

#include <algorithm>
#include <array>
#include <span>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"

namespace trainyard::networks {

at::ScalarType scalar_type(models::Dtype dtype) {
  constexpr std::array types{at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kInt,
                             at::kShort, at::kChar,   at::kByte,     at::kBool};  // in the order of Dtype
  return types.at(static_cast<std::size_t>(dtype));
}

at::Tensor make_tensor(const models::StoredTensor& stored, at::Device device) {
  const at::NoGradGuard no_grad;
  at::Tensor tensor = at::empty_strided(stored.sizes, stored.strides, scalar_type(stored.dtype));
  const std::size_t begin = static_cast<std::size_t>(stored.offset) * tensor.element_size();
  const std::span<const char> from(*stored.storage);
  const std::span<char> to(static_cast<char*>(tensor.storage().mutable_data()), tensor.storage().nbytes());
  if (begin > from.size() || to.size() > from.size() - begin)
    throw InternalError("the stored tensor " + stored.name + " goes beyond its storage");
  std::ranges::copy(from.subspan(begin, to.size()), to.begin());
  if (stored.dtype == models::Dtype::boolean)  // another value than 0 and 1 is undefined behaviour
    for (char& truth : to) truth = truth == 0 ? 0 : 1;
  const bool parameter = stored.role == models::StoredTensor::Role::parameter;
  if (parameter && !tensor.is_non_overlapping_and_dense())
    tensor = tensor.clone(at::MemoryFormat::Contiguous);
  tensor = tensor.to(device);
  return parameter && stored.requires_grad ? tensor.requires_grad_() : tensor;
}

}  // namespace trainyard::networks
