#include "runner/optimizer/update.h"

#include <set>

#include "models/networks/libtorch_private.h"

namespace trainyard::runner {

namespace {

std::int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::set<const void*> storages;
  std::int64_t bytes = 0;
  const auto add = [&](const at::Tensor& tensor) {
    if (storages.insert(tensor.storage().unsafeGetStorageImpl()).second)
      bytes += static_cast<std::int64_t>(tensor.storage().nbytes());
  };
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    if (!tensor.is_sparse()) {
      add(tensor);
    } else {
      add(libtorch::sparse_rows(tensor));
      add(libtorch::sparse_values(tensor));
    }
  }
  return bytes;
}

}  // namespace

HeldBytes held_bytes(const Update& update, std::vector<at::Tensor> parameters) {
  std::vector<at::Tensor> state;
  for (const auto& row : update.optimizer->state()) state.insert(state.end(), row.begin(), row.end());
  HeldTensors held = update.reducer->held();
  for (const at::Tensor& parameter : parameters) held.gradients.push_back(parameter.grad());
  parameters.insert(parameters.end(), held.parameters.begin(), held.parameters.end());
  HeldBytes bytes =
      update.whole->held().value_or(HeldBytes{bytes_of(parameters) / held.sharing, bytes_of(held.gradients),
                                              0, bytes_of(held.messages) / held.sharing});
  bytes.state = bytes_of(state) / held.sharing;
  return bytes;
}

}  // namespace trainyard::runner
