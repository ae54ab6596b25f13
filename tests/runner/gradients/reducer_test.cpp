#include "runner/gradients/reducer.h"

#include "base/error.h"
#include "runner/parity/parity_check.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/replicas.h"

namespace {

using namespace trainyard;
using namespace trainyard::runner;
using namespace trainyard::runner::testing;
using networks::NamedParameter;

std::vector<NamedParameter> parameters_of_sizes(const std::vector<std::int64_t>& sizes) {
  std::vector<NamedParameter> parameters;
  parameters.reserve(sizes.size());
  for (const std::int64_t size : sizes) {
    parameters.push_back(
        {std::to_string(parameters.size()) + ".weight", at::ones({size}, at::kDouble).requires_grad_()});
  }
  return parameters;
}

// The gradient of Σ_i factor · (i + 1) · Σ parameter_i is factor · (i + 1) everywhere.
at::Tensor weighted_sum(const std::vector<NamedParameter>& parameters, double factor) {
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    sum = sum + parameters[i].value.sum() * (factor * static_cast<double>(i + 1));
  }
  return sum;
}

// A communicator without peers. It records the sizes of all-reduces.
class Recorder final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* transport() const override { return "test double"; }
  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override {
    sizes.push_back(tensor.numel());
    return finished_by([] {});
  }
  std::unique_ptr<Work> send(const at::Tensor&, int, int) override { return nullptr; }
  std::unique_ptr<Work> receive(const at::Tensor&, int, int) override { return nullptr; }
  void broadcast(const at::Tensor&, int) override {}
  void barrier() override {}
  std::vector<std::int64_t> sizes;
};

}  // namespace

TEST_CASE("gradients are summed over ranks for any bucket size") {
  const std::vector<std::int64_t> sizes{5, 1, 130, 7, 64, 3, 1};
  for (const std::int64_t bucket_bytes : {1, 9, 64, 521, 1 << 20}) {
    for (const int ranks : {2, 3}) {
      CAPTURE(bucket_bytes);
      CAPTURE(ranks);
      run_ranks(ranks, [&](Communicator& communicator) {
        auto parameters = parameters_of_sizes(sizes);
        const auto reducer = bucket_reducer(parameters, communicator, bucket_bytes);
        for (int step = 1; step <= 3; ++step) {
          reducer->prepare();
          reducer->last_backward();
          weighted_sum(parameters, step * (communicator.rank() + 1)).backward();
          reducer->finish();
          const double ranks_sum = ranks * (ranks + 1) / 2.0;
          for (std::size_t i = 0; i < sizes.size(); ++i) {
            const at::Tensor& gradient = reducer->gradients()[i];
            REQUIRE(gradient.sizes() == parameters[i].value.sizes());
            if (!gradient.eq(step * ranks_sum * static_cast<double>(i + 1)).all().item<bool>()) {
              throw std::runtime_error("wrong sum in parameter " + std::to_string(i));
            }
          }
        }
      });
    }
  }
}

TEST_CASE("a rank without samples contributes zeros") {
  run_ranks(3, [](Communicator& communicator) {
    auto parameters = parameters_of_sizes({4, 2, 9});
    const auto reducer = bucket_reducer(parameters, communicator, 40);
    for (int step = 0; step < 2; ++step) {
      if (communicator.rank() == 1) {
        reducer->reduce_zeros();
      } else {
        reducer->prepare();
        reducer->last_backward();
        weighted_sum(parameters, 10).backward();
        reducer->finish();
      }
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (!reducer->gradients()[i].eq(20.0 * static_cast<double>(i + 1)).all().item<bool>()) {
          throw std::runtime_error("wrong sum in parameter " + std::to_string(i));
        }
      }
    }
  });
}

TEST_CASE("gradients add up over micro-batches and are reduced once, in the last backward pass") {
  run_ranks(2, [](Communicator& communicator) {
    auto parameters = parameters_of_sizes({4, 2, 9});
    const auto reducer = bucket_reducer(parameters, communicator, 40);
    for (int step = 0; step < 2; ++step) {
      reducer->prepare();
      weighted_sum(parameters, 1).backward();
      weighted_sum(parameters, 10).backward();
      reducer->last_backward();
      weighted_sum(parameters, 100).backward();
      reducer->finish();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (!reducer->gradients()[i].eq(222.0 * static_cast<double>(i + 1)).all().item<bool>()) {
          throw std::runtime_error("wrong sum in parameter " + std::to_string(i));
        }
      }
    }
  });
  Recorder recorder;
  auto parameters = parameters_of_sizes({6, 6});
  const auto reducer = bucket_reducer(parameters, recorder, 1);
  reducer->prepare();
  weighted_sum(parameters, 1).backward();
  CHECK(recorder.sizes.empty());
  reducer->last_backward();
  weighted_sum(parameters, 1).backward();
  CHECK(recorder.sizes.size() == 2);
  reducer->finish();
}

TEST_CASE("buckets hold parameters in reverse order up to their size, and large parameters alone") {
  Recorder recorder;
  auto parameters = parameters_of_sizes({10, 100, 3, 4, 5});
  const auto reducer = bucket_reducer(parameters, recorder, std::int64_t{10} * 8);
  reducer->prepare();
  reducer->last_backward();
  weighted_sum(parameters, 1).backward();
  reducer->finish();
  CHECK(recorder.sizes == std::vector<std::int64_t>{5 + 4, 3, 100, 10});
}

TEST_CASE("a bucket is reduced while the backward pass continues") {
  Recorder recorder;
  auto parameters = parameters_of_sizes({6, 6});
  const auto reducer = bucket_reducer(parameters, recorder, 1);
  reducer->prepare();
  reducer->last_backward();
  // y = Σ (first² · second): the gradient of `second` is complete before the chain reaches `inner`.
  std::size_t launched_before_first = 0;
  const at::Tensor inner = parameters[0].value.square();
  inner.register_hook([&](const at::Tensor&) { launched_before_first = recorder.sizes.size(); });
  (inner.exp() * parameters[1].value).sum().backward();
  reducer->finish();
  CHECK(launched_before_first == 1);
  CHECK(recorder.sizes.size() == 2);
}

TEST_CASE("a parameter without a gradient is an error that names it") {
  Recorder recorder;
  auto parameters = parameters_of_sizes({6, 6});
  const auto reducers = {bucket_reducer(parameters, recorder, 1), local_reducer(parameters)};
  for (const auto& reducer : reducers) {
    reducer->prepare();
    reducer->last_backward();
    parameters[1].value.sum().backward();
    CHECK_THROWS_WITH_AS(reducer->finish(), "parameter 0.weight has no gradient in this step", InternalError);
  }
}

TEST_CASE("ranks with different initial parameters get an error with the first layer that differs") {
  std::vector<std::string> errors(3);
  run_ranks(3, [&](Communicator& communicator) {
    auto parameters = parameters_of_sizes({4, 2, 9, 1});
    check_equal_parameters(parameters, communicator);
    if (communicator.rank() == 2) parameters[1].value.detach()[1] += 1e-15;
    if (communicator.rank() > 0) parameters[3].value.detach()[0] = -1;
    try {
      check_equal_parameters(parameters, communicator);
    } catch (const InternalError& error) {
      errors[static_cast<std::size_t>(communicator.rank())] = error.what();
    }
  });
  for (const std::string& error : errors) {
    CHECK(error == "ranks start with different parameters: 1 of 3 ranks differ from rank 0 in 1.weight");
  }
}
