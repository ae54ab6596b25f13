#include "runner/communicator/communicator.h"

#include <string>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"

namespace trainyard::runner {

namespace {

class SingleCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* transport() const override { return "none"; }
  std::unique_ptr<Work> all_reduce(const at::Tensor&) override {
    return finished_by([] {});
  }
  std::unique_ptr<Work> send(const at::Tensor&, int, int) override { throw alone(); }
  std::unique_ptr<Work> receive(const at::Tensor&, int, int) override { throw alone(); }
  void broadcast(const at::Tensor&, int) override {}
  void barrier() override {}

 private:
  static InternalError alone() { return InternalError("send or receive in a group of one rank"); }
};

namespace autograd = torch::autograd;

// All ranks have the same memory order: images keep theirs.
at::Tensor reduced(const at::Tensor& tensor, Communicator& communicator) {
  constexpr std::int64_t of_images = 4;
  at::Tensor sum =
      tensor.clone(tensor.dim() == of_images ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
  if (sum.numel() > 0) communicator.all_reduce(sum.as_strided({sum.numel()}, {1}))->wait();
  return sum;
}

// An autograd function can save only tensors and numbers for backward. So the address of the communicator is
// saved as a number.
// NOLINTBEGIN(performance-no-int-to-ptr)
struct Sum : autograd::Function<Sum> {
  // Sums the tensor, its gradient, or both.
  static at::Tensor forward(autograd::AutogradContext* context, const at::Tensor& tensor,
                            std::int64_t communicator, bool values, bool gradients) {
    context->saved_data["communicator"] = communicator;
    context->saved_data["gradients"] = gradients;
    return values ? reduced(tensor, *reinterpret_cast<Communicator*>(communicator)) : tensor;
  }
  static autograd::variable_list backward(autograd::AutogradContext* context,
                                          const autograd::variable_list& gradients) {
    auto* communicator = reinterpret_cast<Communicator*>(context->saved_data["communicator"].toInt());
    const bool sums = context->saved_data["gradients"].toBool();
    return {sums ? reduced(gradients.front(), *communicator) : gradients.front(), at::Tensor(), at::Tensor(),
            at::Tensor()};
  }
};
// NOLINTEND(performance-no-int-to-ptr)

using Work = Communicator::Work;

// Keeps the copy until the transport has finished, then copies the result to `back_to` if that is defined.
std::unique_ptr<Work> copied_work(std::unique_ptr<Work> work, at::Tensor copy, at::Tensor back_to) {
  return finished_by([work = std::move(work), copy = std::move(copy), back_to = std::move(back_to)] {
    work->wait();
    const at::NoGradGuard no_grad;
    if (back_to.defined()) back_to.copy_(copy);
  });
}

class HostCopies final : public Communicator {
 public:
  HostCopies(std::unique_ptr<Communicator> through, at::Device device)
      : through_(std::move(through)),
        device_(device),
        transport_(std::string(through_->transport()) + ", host copies") {}

  int rank() const override { return through_->rank(); }
  int size() const override { return through_->size(); }
  const char* transport() const override { return transport_.c_str(); }
  Capabilities capabilities() const override { return {.same_clock = through_->capabilities().same_clock}; }
  at::Device device() const override { return device_; }

  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override {
    if (!copied(tensor)) return through_->all_reduce(tensor);
    const at::Tensor copy = copy_of(tensor);
    return copied_work(through_->all_reduce(copy), copy, tensor);
  }
  std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) override {
    if (!copied(tensor)) return through_->send(tensor, to, tag);
    const at::Tensor copy = copy_of(tensor);
    return copied_work(through_->send(copy, to, tag), copy, at::Tensor());
  }
  std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) override {
    if (!copied(tensor)) return through_->receive(tensor, from, tag);
    const at::Tensor copy = like(tensor);
    return copied_work(through_->receive(copy, from, tag), copy, tensor);
  }
  int receive_from_any(const at::Tensor& tensor, int tag) override {
    return through_->receive_from_any(tensor, tag);
  }
  void broadcast(const at::Tensor& tensor, int root) override {
    if (!copied(tensor)) return through_->broadcast(tensor, root);
    const at::NoGradGuard no_grad;
    const at::Tensor copy = rank() == root ? copy_of(tensor) : like(tensor);
    through_->broadcast(copy, root);
    if (rank() != root) tensor.copy_(copy);
  }
  void barrier() override { through_->barrier(); }
  std::int64_t take_sent_bytes() override { return through_->take_sent_bytes(); }

 private:
  bool copied(const at::Tensor& tensor) const { return tensor.device() == device_; }
  // In pinned memory if the device is a GPU.
  at::Tensor like(const at::Tensor& tensor) const {
    const auto options = at::TensorOptions(tensor.scalar_type()).pinned_memory(device_.is_cuda());
    return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  }
  // Waits until `tensor` has been computed.
  at::Tensor copy_of(const at::Tensor& tensor) const {
    const at::NoGradGuard no_grad;
    return like(tensor).copy_(tensor);
  }

  std::unique_ptr<Communicator> through_;
  at::Device device_;
  std::string transport_;
};

}  // namespace

at::Tensor Communicator::allocate(std::int64_t count, at::ScalarType dtype) {
  return at::zeros({count}, at::TensorOptions(dtype).device(device()));
}

int Communicator::receive_from_any(const at::Tensor& /*tensor*/, int /*tag*/) {
  throw InternalError(std::string(transport()) + " cannot receive from any rank");
}

std::optional<double> take_straggler_seconds(Communicator& communicator) {
  SharedMemoryFeatures* const shared = communicator.shared_memory();
  return shared ? std::optional(shared->take_straggler_seconds()) : std::nullopt;
}

double sum_over(Communicator& communicator, double own) {
  const at::Tensor sum = at::full({}, own, at::kDouble);
  communicator.all_reduce(sum)->wait();
  return sum.item<double>();
}

bool holds_on_all(Communicator& communicator, bool own) {
  return sum_over(communicator, own ? 0 : 1) == 0;
}

std::unique_ptr<Communicator> single_communicator() {
  return std::make_unique<SingleCommunicator>();
}

at::Tensor sum_over_ranks(const at::Tensor& tensor, Communicator& communicator) {
  return Sum::apply(tensor, reinterpret_cast<std::int64_t>(&communicator), true, true);
}

at::Tensor sum_of_parts(const at::Tensor& tensor, Communicator& communicator) {
  return Sum::apply(tensor, reinterpret_cast<std::int64_t>(&communicator), true, false);
}

at::Tensor copy_to_parts(const at::Tensor& tensor, Communicator& communicator) {
  return Sum::apply(tensor, reinterpret_cast<std::int64_t>(&communicator), false, true);
}

std::unique_ptr<Communicator> host_copies(std::unique_ptr<Communicator> through, at::Device device) {
  return std::make_unique<HostCopies>(std::move(through), device);
}

}  // namespace trainyard::runner
