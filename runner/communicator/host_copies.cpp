#include "runner/communicator/host_copies.h"

#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace trainyard::runner {

namespace {

using Work = Communicator::Work;

// Keeps the copy until the other is done with it, and brings back what came.
class CopiedWork final : public Work {
 public:
  CopiedWork(std::unique_ptr<Work> work, at::Tensor copy, at::Tensor back_to)
      : work_(std::move(work)), copy_(std::move(copy)), back_to_(std::move(back_to)) {}
  void wait() override {
    work_->wait();
    const at::NoGradGuard no_grad;
    if (back_to_.defined()) back_to_.copy_(copy_);
  }

 private:
  std::unique_ptr<Work> work_;
  at::Tensor copy_;
  at::Tensor back_to_;  // undefined: nothing comes back
};

class HostCopies final : public Communicator {
 public:
  HostCopies(std::unique_ptr<Communicator> through, at::Device device)
      : through_(std::move(through)),
        device_(device),
        transport_(std::string(through_->transport()) + ", host copies") {}

  int rank() const override { return through_->rank(); }
  int size() const override { return through_->size(); }
  const char* transport() const override { return transport_.c_str(); }
  bool same_clock() const override { return through_->same_clock(); }
  at::Device device() const override { return device_; }

  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override {
    if (!copied(tensor)) return through_->all_reduce(tensor);
    const at::Tensor copy = copy_of(tensor);
    return std::make_unique<CopiedWork>(through_->all_reduce(copy), copy, tensor);
  }
  std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) override {
    if (!copied(tensor)) return through_->send(tensor, to, tag);
    const at::Tensor copy = copy_of(tensor);
    return std::make_unique<CopiedWork>(through_->send(copy, to, tag), copy, at::Tensor());
  }
  std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) override {
    if (!copied(tensor)) return through_->receive(tensor, from, tag);
    const at::Tensor copy = like(tensor);
    return std::make_unique<CopiedWork>(through_->receive(copy, from, tag), copy, tensor);
  }
  void broadcast(const at::Tensor& tensor, int root) override {
    if (!copied(tensor)) return through_->broadcast(tensor, root);
    const at::NoGradGuard no_grad;
    const at::Tensor copy = rank() == root ? copy_of(tensor) : like(tensor);
    through_->broadcast(copy, root);
    if (rank() != root) tensor.copy_(copy);
  }
  void barrier() override { through_->barrier(); }

 private:
  bool copied(const at::Tensor& tensor) const { return tensor.device() == device_; }
  // In host memory that a GPU reads and writes fastest, where there is one.
  at::Tensor like(const at::Tensor& tensor) const {
    const auto options = at::TensorOptions(tensor.scalar_type()).pinned_memory(device_.is_cuda());
    return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  }
  // Waits for what computes `tensor`.
  at::Tensor copy_of(const at::Tensor& tensor) const {
    const at::NoGradGuard no_grad;
    return like(tensor).copy_(tensor);
  }

  std::unique_ptr<Communicator> through_;
  at::Device device_;
  std::string transport_;
};

}  // namespace

std::unique_ptr<Communicator> host_copies(std::unique_ptr<Communicator> through, at::Device device) {
  return std::make_unique<HostCopies>(std::move(through), device);
}

}  // namespace trainyard::runner
