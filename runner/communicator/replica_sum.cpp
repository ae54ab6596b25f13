#include "runner/communicator/replica_sum.h"

#include <cstdint>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace trainyard::runner {

namespace {

namespace autograd = torch::autograd;

at::Tensor reduced(const at::Tensor& tensor, Communicator& communicator) {
  at::Tensor sum = tensor.clone(at::MemoryFormat::Contiguous);
  communicator.all_reduce(sum)->wait();
  return sum;
}

// What such a function keeps for its backward is a tensor or a number, so the communicator is its address.
// NOLINTBEGIN(performance-no-int-to-ptr)
struct Sum : autograd::Function<Sum> {
  static at::Tensor forward(autograd::AutogradContext* context, const at::Tensor& tensor,
                            std::int64_t communicator) {
    context->saved_data["communicator"] = communicator;
    return reduced(tensor, *reinterpret_cast<Communicator*>(communicator));
  }
  static autograd::variable_list backward(autograd::AutogradContext* context,
                                          const autograd::variable_list& gradients) {
    auto* communicator = reinterpret_cast<Communicator*>(context->saved_data["communicator"].toInt());
    return {reduced(gradients.front(), *communicator), at::Tensor()};
  }
};
// NOLINTEND(performance-no-int-to-ptr)

}  // namespace

at::Tensor sum_over_ranks(const at::Tensor& tensor, Communicator& communicator) {
  return Sum::apply(tensor, reinterpret_cast<std::int64_t>(&communicator));
}

}  // namespace trainyard::runner
