#include "runner/trainer/whole_tensors.h"

#include <ATen/ATen.h>

#include "models/networks/layer_parts.h"

namespace trainyard::runner {

std::vector<networks::NamedParameter> whole_tensors(std::vector<networks::NamedParameter> own,
                                                    Communicator& parts) {
  for (networks::NamedParameter& tensor : own) {
    if (!tensor.cut) continue;
    const at::Tensor part = tensor.value.detach();
    const at::Tensor whole = at::zeros(networks::whole_sizes(part, *tensor.cut), part.options());
    const at::Tensor view = networks::view_of_part(whole, *tensor.cut);
    view.copy_(part.reshape(view.sizes()));
    parts.all_reduce(whole)->wait();
    tensor = {tensor.name, whole, tensor.factors};
  }
  return own;
}

std::vector<networks::NamedParameter> uncut(std::vector<networks::NamedParameter> tensors) {
  std::erase_if(tensors, [](const networks::NamedParameter& tensor) { return tensor.cut.has_value(); });
  return tensors;
}

}  // namespace trainyard::runner
