#include "runner/communicator/communicator.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace trainyard::runner {

namespace {

class Done final : public Communicator::Work {
 public:
  void wait() override {}
};

class SingleCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* transport() const override { return "none"; }
  std::unique_ptr<Work> all_reduce(const at::Tensor&) override { return std::make_unique<Done>(); }
  std::unique_ptr<Work> send(const at::Tensor&, int, int) override { throw alone(); }
  std::unique_ptr<Work> receive(const at::Tensor&, int, int) override { throw alone(); }
  void broadcast(const at::Tensor&, int) override {}
  void barrier() override {}

 private:
  static InternalError alone() {
    return InternalError("a single rank has nobody to send to or receive from");
  }
};

}  // namespace

at::Tensor Communicator::allocate(std::int64_t count, at::ScalarType dtype) {
  return at::zeros({count}, at::TensorOptions(dtype).device(device()));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): others keep it
std::unique_ptr<Communicator::Work> Communicator::meet(std::function<void()> then) {
  barrier();
  then();
  return std::make_unique<Done>();
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

}  // namespace trainyard::runner
