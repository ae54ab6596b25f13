// Replicas that each update a shard compute the same as one optimizer.
#include "runner/optimizer/sharded_optimizer.h"

#include <ATen/ATen.h>

#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::sharded_optimizer_test {

// Odd sizes: one is too small to be cut, and one has its channels last.
std::vector<at::Tensor> some_parameters(at::ScalarType dtype) {
  const auto numbers = [&](std::int64_t count) { return at::arange(count, at::kDouble).sin().to(dtype); };
  return {numbers(std::int64_t{7} * 31).view({7, 31}), numbers(1),
          numbers(std::int64_t{5} * 3 * 4 * 4).view({5, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast),
          numbers(1000)};
}

// Gradients in the memory order of their parameters, as in a reducer.
std::vector<at::Tensor> gradients_of_step(const std::vector<at::Tensor>& parameters, int step) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor gradient = at::empty_like(parameter);
    gradient.copy_((at::arange(parameter.numel(), at::kDouble) * (step + 1)).cos().view(parameter.sizes()));
    gradients.push_back(gradient);
  }
  return gradients;
}

void take_steps(Optimizer& optimizer, const std::vector<at::Tensor>& parameters, int first, int last) {
  for (int step = first; step < last; ++step) {
    if (step == 3) optimizer.set_learning_rate(0.02);
    optimizer.step(gradients_of_step(parameters, step));
  }
}

// One bucket with several parameters, and others with one.
ShardLayout layout_of(const std::vector<at::Tensor>& parameters) {
  return {parameters, cut_into_buckets(parameters, 2000)};
}

void take_steps_in_slices(Optimizer& optimizer, const std::vector<at::Tensor>& parameters, int first,
                          int last, Communicator& ranks) {
  const auto slices = layout_of(parameters).slices(ranks.rank(), ranks.size());
  for (int step = first; step < last; ++step) {
    if (step == 3) optimizer.set_learning_rate(0.02);
    const auto gradients = gradients_of_step(parameters, step);
    std::vector<at::Tensor> own;
    own.reserve(slices.size());
    for (const Shard& slice : slices) own.push_back(slice.of(gradients[slice.parameter]));
    optimizer.step(own);
  }
}

void expect_near(const at::Tensor& found, const at::Tensor& expected, const char* what) {
  const double tolerance = found.scalar_type() == at::kDouble ? 1e-14 : 1e-6;
  if (!at::allclose(found, expected, tolerance, tolerance)) throw std::runtime_error(what);
}

void expect_equal_states(const Optimizer& found, const Optimizer& expected) {
  const auto rows = found.state();
  const auto expected_rows = expected.state();
  if (rows.size() != expected_rows.size()) throw std::runtime_error("rows of the state");
  for (std::size_t k = 0; k < rows.size(); ++k)
    for (std::size_t i = 0; i < expected_rows[k].size(); ++i)
      expect_near(rows[k].at(i), expected_rows[k][i], "state");
}

const experiments::Optimizer settings_to_try[]{
    {.kind = "sgd", .learning_rate = 0.1, .momentum = 0, .weight_decay = 0.01},
    {.kind = "sgd", .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0},
    {.kind = "adam", .learning_rate = 0.1, .momentum = 0, .weight_decay = 0.02},
    {.kind = "adamw", .learning_rate = 0.1, .momentum = 0, .weight_decay = 0.02},
};

TEST_CASE("replicas that each update a shard have the parameters and state of one replica that updates all") {
  for (const experiments::Optimizer& settings : settings_to_try) {
    CAPTURE(settings.kind);
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      for (const int replicas : {2, 3, 5}) {
        testing::run_ranks(replicas, [&](Communicator& ranks) {
          const auto alone = some_parameters(dtype);
          const auto whole = make_optimizer(settings, alone);
          const auto parameters = some_parameters(dtype);
          const auto strides = parameters[2].strides().vec();
          const auto shared = sharded_optimizer(settings, parameters, layout_of(parameters), ranks);
          take_steps(*whole, alone, 0, 6);
          take_steps_in_slices(*shared, parameters, 0, 6, ranks);
          for (std::size_t i = 0; i < alone.size(); ++i) expect_near(parameters[i], alone[i], "parameter");
          if (parameters[2].strides().vec() != strides) throw std::runtime_error("strides");
          expect_equal_states(*shared, *whole);
        });
      }
    }
  }
}

TEST_CASE("all replicas share one copy of the parameters in memory") {
  testing::run_ranks(3, [](Communicator& ranks) {
    const auto parameters = some_parameters(at::kFloat);
    const auto optimizer = sharded_optimizer(settings_to_try[0], parameters, layout_of(parameters), ranks);
    ranks.barrier();
    if (ranks.rank() == 2) parameters[3].fill_(4711);
    ranks.barrier();
    if (!parameters[3].eq(4711).all().item<bool>()) throw std::runtime_error("not shared");
  });
}

TEST_CASE("the state of an optimizer can be restored with another number of replicas") {
  for (const experiments::Optimizer& settings : settings_to_try) {
    CAPTURE(settings.kind);
    const auto alone = some_parameters(at::kDouble);
    const auto whole = make_optimizer(settings, alone);
    take_steps(*whole, alone, 0, 3);
    const auto kept = whole->state();
    std::vector<at::Tensor> values;
    values.reserve(alone.size());
    for (const at::Tensor& parameter : alone) values.push_back(parameter.clone());
    std::vector<std::vector<at::Tensor>> copies;
    for (const auto& row : kept) {
      copies.emplace_back();
      for (const at::Tensor& tensor : row) copies.back().push_back(tensor.clone());
    }
    take_steps(*whole, alone, 3, 6);
    testing::run_ranks(3, [&](Communicator& ranks) {
      const auto parameters = some_parameters(at::kDouble);
      const auto shared = sharded_optimizer(settings, parameters, layout_of(parameters), ranks);
      for (std::size_t i = 0; i < values.size(); ++i) parameters[i].copy_(values[i]);
      const auto rows = shared->state();
      for (std::size_t k = 0; k < rows.size(); ++k)
        for (std::size_t i = 0; i < rows[k].size(); ++i) rows[k][i].copy_(copies[k][i]);
      shared->restore_step(3);
      ranks.barrier();
      take_steps_in_slices(*shared, parameters, 3, 6, ranks);
      for (std::size_t i = 0; i < alone.size(); ++i) expect_near(parameters[i], alone[i], "parameter");
    });
  }
}

TEST_CASE("without shared memory there is no sharded optimizer, and parameters keep their memory") {
  const auto parameters = some_parameters(at::kDouble);
  const auto communicator = single_communicator();
  const void* memory = parameters[0].const_data_ptr();
  CHECK(sharded_optimizer(settings_to_try[2], parameters, layout_of(parameters), *communicator) == nullptr);
  CHECK(parameters[0].const_data_ptr() == memory);
}

}  // namespace trainyard::runner::sharded_optimizer_test
