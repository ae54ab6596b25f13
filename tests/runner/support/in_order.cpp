#include "tests/runner/support/in_order.h"

#include <utility>

#include "tests/runner/support/passed_on.h"

namespace trainyard::runner::testing {

namespace {

constexpr int any_tag = 0;
constexpr int beyond = 1;  // tags of messages in host memory

class InOrder final : public PassedOn {
 public:
  InOrder(std::unique_ptr<Communicator> through, int& host_messages)
      : PassedOn(std::move(through)), host_messages_(host_messages) {}
  const char* transport() const override { return "in order"; }
  Capabilities capabilities() const override { return {.ordered_messages = true}; }
  std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) override {
    if (tensor.is_floating_point()) return PassedOn::send(tensor, to, any_tag);
    ++host_messages_;
    return PassedOn::send(tensor, to, tag + beyond);
  }
  std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) override {
    return PassedOn::receive(tensor, from, tensor.is_floating_point() ? any_tag : tag + beyond);
  }

 private:
  int& host_messages_;
};

}  // namespace

std::unique_ptr<Communicator> in_order(std::unique_ptr<Communicator> through, int& host_messages) {
  return std::make_unique<InOrder>(std::move(through), host_messages);
}

}  // namespace trainyard::runner::testing
