#include "tests/runner/in_order.h"

#include <utility>

namespace trainyard::runner::testing {

namespace {

constexpr int any_tag = 0;
constexpr int beyond = 1;  // tags of messages in host memory

class InOrder final : public Communicator {
 public:
  InOrder(std::unique_ptr<Communicator> through, int& host_messages)
      : through_(std::move(through)), host_messages_(host_messages) {}
  int rank() const override { return through_->rank(); }
  int size() const override { return through_->size(); }
  const char* transport() const override { return "in order"; }
  bool in_order() const override { return true; }
  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override { return through_->all_reduce(tensor); }
  std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) override {
    if (tensor.is_floating_point()) return through_->send(tensor, to, any_tag);
    ++host_messages_;
    return through_->send(tensor, to, tag + beyond);
  }
  std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) override {
    return through_->receive(tensor, from, tensor.is_floating_point() ? any_tag : tag + beyond);
  }
  void broadcast(const at::Tensor& tensor, int root) override { through_->broadcast(tensor, root); }
  void barrier() override { through_->barrier(); }

 private:
  std::unique_ptr<Communicator> through_;
  int& host_messages_;
};

}  // namespace

std::unique_ptr<Communicator> in_order(std::unique_ptr<Communicator> through, int& host_messages) {
  return std::make_unique<InOrder>(std::move(through), host_messages);
}

}  // namespace trainyard::runner::testing
