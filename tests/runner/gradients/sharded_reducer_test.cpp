// Each replica's sums of its shards equal those of an all-reduce of all gradients.
#include "runner/gradients/sharded_reducer.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runner/gradients/sparse_gradient.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::sharded_reducer_test {

using networks::NamedParameter;
using Gradients = std::vector<at::Tensor>;

constexpr std::int64_t bucket_bytes = 2000;

// Odd sizes: a matrix alone in its bucket, one with others, and a bucket with fewer cache lines than ranks.
std::vector<NamedParameter> odd_parameters(at::ScalarType dtype) {
  const auto zeros = [&](at::IntArrayRef sizes) { return at::zeros(sizes, dtype); };
  return {{"first", zeros({7, 31}).requires_grad_()},
          {"one", zeros({1}).requires_grad_()},
          {"image", zeros({5, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_()},
          {"matrix", zeros({41, 13}).requires_grad_()},
          {"long", zeros({1001}).requires_grad_()}};
}

// Whole numbers that differ between ranks. Their sums are exact in any order.
at::Tensor gradient_of(const at::Tensor& parameter, int rank, int step) {
  const at::Tensor indices = at::arange(parameter.numel(), at::kLong);
  const at::Tensor numbers = (indices * (7 + rank) + 3 * step + rank).remainder(101) - 50;
  return at::empty_like(parameter.detach()).copy_(numbers.view(parameter.sizes()));
}

at::Tensor with_rows(const at::Tensor& whole, const at::Tensor& rows) {
  return at::sparse_coo_tensor(rows.unsqueeze(0), whole.index_select(0, rows), whole.sizes());
}

// Every (2 + rank)th row with another first row in each step. Rank 1 has none in step 3.
at::Tensor some_rows(const at::Tensor& whole, int rank, int step) {
  const std::int64_t end = rank == 1 && step == 3 ? 0 : whole.size(0);
  return with_rows(whole, at::arange(std::min<std::int64_t>(step, end), end, 2 + rank, at::kLong));
}

// All rows but one.
at::Tensor most_rows(const at::Tensor& whole, int rank, int step) {
  const at::Tensor all = at::arange(whole.size(0), at::kLong);
  return with_rows(whole, all.masked_select(all.ne((7 * rank + step) % whole.size(0))));
}

// A function whose gradient is `wanted`, dense or sparse.
struct Wanted : torch::autograd::Function<Wanted> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& parameter,
                            const at::Tensor& wanted) {
    context->saved_data["wanted"] = wanted;
    return parameter.sum();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list&) {
    return {context->saved_data["wanted"].toTensor(), at::Tensor()};
  }
};

void backward(const std::vector<NamedParameter>& parameters, const Gradients& wanted) {
  at::Tensor sum = at::zeros({}, parameters.front().value.options());
  for (std::size_t i = 0; i < parameters.size(); ++i)
    sum = sum + Wanted::apply(parameters[i].value, wanted[i]);
  sum.backward();
}

enum class Matrix { whole, rows, most_rows, whole_on_rank_0, most_rows_on_rank_0 };

Gradients gradients_of(const std::vector<NamedParameter>& parameters, int rank, int step, Matrix matrix) {
  Gradients gradients;
  for (const auto& parameter : parameters) {
    gradients.push_back(gradient_of(parameter.value, rank, step));
    if (parameter.name != "matrix") continue;
    const bool only_on_0 = matrix == Matrix::whole_on_rank_0 || matrix == Matrix::most_rows_on_rank_0;
    if (matrix == Matrix::rows || (only_on_0 && rank > 0))
      gradients.back() = some_rows(gradients.back(), rank, step);
    else if (matrix == Matrix::most_rows || matrix == Matrix::most_rows_on_rank_0)
      gradients.back() = most_rows(gradients.back(), rank, step);
  }
  return gradients;
}

// Whether the rank has no samples in this step.
bool is_idle(int rank, int step) {
  return rank == 1 && step == 2;
}

Gradients sums_of(const std::vector<NamedParameter>& parameters, int ranks, int step, Matrix matrix) {
  Gradients sums;
  for (const auto& parameter : parameters) sums.push_back(at::zeros_like(parameter.value.detach()));
  for (int rank = 0; rank < ranks; ++rank) {
    if (is_idle(rank, step)) continue;
    const Gradients gradients = gradients_of(parameters, rank, step, matrix);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add_(whole(gradients[i]));
  }
  return sums;
}

void expect_slices(const Gradients& found, const Gradients& sums, const std::vector<Shard>& slices) {
  if (found.size() != slices.size()) throw std::runtime_error("another number of slices");
  for (std::size_t k = 0; k < slices.size(); ++k)
    if (!at::equal(whole(found[k]), slices[k].of(sums[slices[k].parameter])))
      throw std::runtime_error("another sum in parameter " + std::to_string(slices[k].parameter));
}

ShardLayout layout_for(const std::vector<NamedParameter>& parameters) {
  const auto values = values_of(parameters);
  return {values, cut_into_buckets(values, bucket_bytes)};
}

void reduce_and_compare(Communicator& ranks, at::ScalarType dtype, Matrix matrix) {
  const auto parameters = odd_parameters(dtype);
  const ShardLayout layout = layout_for(parameters);
  const auto slices = layout.slices(ranks.rank(), ranks.size());
  const auto reducer = sharded_reducer(parameters, layout, ranks);
  for (int step = 0; step < 5; ++step) {
    if (is_idle(ranks.rank(), step)) {
      reducer->reduce_zeros();
    } else {
      reducer->prepare();
      reducer->last_backward();
      backward(parameters, gradients_of(parameters, ranks.rank(), step, matrix));
      reducer->finish();
    }
    const Gradients sums = sums_of(parameters, ranks.size(), step, matrix);
    expect_slices(reducer->gradients(), sums, slices);
    ranks.barrier();
    if (step % 2 == 1) continue;
    const Gradients wholes = reducer->whole_gradients();
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (!at::equal(wholes[i], sums[i]) || wholes[i].strides() != sums[i].strides())
        throw std::runtime_error("another whole sum of parameter " + std::to_string(i));
  }
}

TEST_CASE("each replica sums its shards over all ranks, for dense and sparse gradients") {
  for (const int ranks : {2, 3, 5}) {
    CAPTURE(ranks);
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble})
      for (const Matrix matrix : {Matrix::whole, Matrix::rows, Matrix::most_rows, Matrix::whole_on_rank_0,
                                  Matrix::most_rows_on_rank_0})
        testing::run_ranks(ranks, [&](Communicator& own) { reduce_and_compare(own, dtype, matrix); });
  }
}

TEST_CASE("the sum of sparse gradients is sparse, with each row once") {
  testing::run_ranks(2, [](Communicator& ranks) {
    const auto parameters = odd_parameters(at::kFloat);
    const ShardLayout layout = layout_for(parameters);
    const auto reducer = sharded_reducer(parameters, layout, ranks);
    reducer->prepare();
    reducer->last_backward();
    backward(parameters, gradients_of(parameters, ranks.rank(), 0, Matrix::rows));
    reducer->finish();
    const auto slices = layout.slices(ranks.rank(), ranks.size());
    for (std::size_t k = 0; k < slices.size(); ++k) {
      const at::Tensor& sum = reducer->gradients()[k];
      if (sum.is_sparse() != (parameters[slices[k].parameter].name == "matrix"))
        throw std::runtime_error("sparse or not");
      if (!sum.is_sparse()) continue;
      // Every second row of rank 0 and every third row of rank 1: four of six rows.
      std::int64_t expected = 0;
      for (std::int64_t row = slices[k].first_row(); row < slices[k].last_row(); ++row)
        expected += row % 2 == 0 || row % 3 == 0 ? 1 : 0;
      if (!sum.is_coalesced() || sum._nnz() != expected) throw std::runtime_error("rows");
    }
  });
}

TEST_CASE("a sparse gradient with most rows becomes dense") {
  const at::Tensor numbers = gradient_of(at::empty({8, 3}), 0, 0);
  const auto first_rows = [&](std::int64_t count) {
    return coalesced(with_rows(numbers, at::arange(count, at::kLong)));
  };
  CHECK(densify_if_full(first_rows(6)).is_sparse());
  const at::Tensor found = densify_if_full(first_rows(7));
  CHECK_FALSE(found.is_sparse());
  CHECK(at::equal(found, first_rows(7).to_dense()));
  CHECK(densify_if_full(numbers).is_same(numbers));
}

TEST_CASE("shards cover every value once, evenly, and cut single matrices only between rows") {
  const auto parameters = odd_parameters(at::kFloat);
  const ShardLayout layout = layout_for(parameters);
  CHECK(layout.columns(3) == 13);
  CHECK(layout.columns(0) == 0);
  for (const int size : {1, 2, 3, 7}) {
    CAPTURE(size);
    std::vector<at::Tensor> times;
    times.reserve(parameters.size());
    for (const auto& parameter : parameters) times.push_back(at::zeros({parameter.value.numel()}, at::kLong));
    for (int rank = 0; rank < size; ++rank) {
      for (const Shard& slice : layout.slices(rank, size)) {
        times[slice.parameter].slice(0, slice.begin, slice.end).add_(1);
        if (slice.columns > 0) CHECK(slice.begin % slice.columns == 0);
      }
    }
    for (const at::Tensor& each : times) CHECK(each.eq(1).all().item<bool>());
  }
  std::int64_t first = 0;
  for (const Shard& slice : layout.slices(0, 2)) first += slice.end - slice.begin;
  CHECK(first == doctest::Approx(0.5 * (7 * 31 + 1 + 240 + 41 * 13 + 1001)).epsilon(0.05));
}

TEST_CASE("a replica that waits for gradients of a lost replica gets an error") {
  std::string error;
  CHECK_THROWS(testing::run_ranks(2, [&](Communicator& ranks) {
    const auto parameters = odd_parameters(at::kFloat);
    const auto reducer = sharded_reducer(parameters, layout_for(parameters), ranks);
    if (ranks.rank() == 1) throw std::runtime_error("gone");
    try {
      reducer->reduce_zeros();
    } catch (const CommunicationError& wrong) {
      error = wrong.what();
    }
  }));
  CHECK(error == "rank 0: asynchronous barrier failed: rank 1 has left");
}

TEST_CASE("without shared memory there is no sharded reducer") {
  const auto parameters = odd_parameters(at::kFloat);
  CHECK(sharded_reducer(parameters, layout_for(parameters), *single_communicator()) == nullptr);
}

}  // namespace trainyard::runner::sharded_reducer_test
