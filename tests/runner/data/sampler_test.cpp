#include "runner/data/sampler.h"

#include <algorithm>

#include "base/error.h"
#include "runner/data/text_dataset.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace {

using namespace trainyard;
using namespace trainyard::runner;

std::vector<std::int64_t> numbers(const at::Tensor& order) {
  return {order.const_data_ptr<std::int64_t>(), order.const_data_ptr<std::int64_t>() + order.numel()};
}

}  // namespace

TEST_CASE("every sample is in exactly one part of one step, and part sizes differ by at most one") {
  for (const std::int64_t samples : {1, 7, 30, 121, 128, 1000}) {
    for (const std::int64_t batch : {1, 2, 30, 64, 2000}) {
      for (const std::int64_t replicas : {1, 2, 3, 4, 7}) {
        std::int64_t next = 0;  // parts have no gap and no overlap
        for (std::int64_t step = 0; step < Sampler(samples, batch, 0, replicas).steps(); ++step) {
          std::int64_t smallest = samples, largest = 0;
          for (std::int64_t replica = 0; replica < replicas; ++replica) {
            const Part part = Sampler(samples, batch, replica, replicas).part(step);
            REQUIRE(part.begin == next);
            next = part.end;
            smallest = std::min(smallest, part.size());
            largest = std::max(largest, part.size());
          }
          REQUIRE(largest - smallest <= 1);
          REQUIRE(next == std::min((step + 1) * batch, samples));
        }
        REQUIRE(next == samples);
      }
    }
  }
}

// Expected: hashlib.sha256(struct.pack("<4q", 2, 0, 3, 1)).hexdigest(), and the same for 2, 0, 3, 1, 2, 0. The second hash
// is that of docs/record-protocol.md for one step of four samples, and for 2, 0, 3 and 1.
TEST_CASE("the batches of an epoch have the documented hash, the same for every mesh") {
  const at::Tensor order = at::tensor({2, 0, 3, 1}, at::kLong);
  const std::string hash = "aa7bfd5dfbee90e89a640ba0190816ef8d46fd9e29496d914507a7c151bfd9f8 steps:";
  for (const std::int64_t replicas : {1, 2, 3}) {
    for (const std::int64_t batch : {4, 100})
      CHECK(Sampler(4, batch, replicas - 1, replicas).batches_hash(order) ==
            hash + "15fb562dce83c32f3b85343ae729f95cafad3b2b84c06733dcfa86892468e211");
    CHECK(Sampler(4, 3, replicas - 1, replicas).batches_hash(order) ==
          hash + "6d02b3372a71224cda44b3f70e643e87163c8d937a3c1cb4ab8353697c36942b");
  }
  CHECK(Sampler(4, 3, 0, 3, Sampling::distributed)
            .batches_hash(order)
            .starts_with("3b6fc63c2b40312112f73ffef2326a26832939beda535b78f7fff3199a625c4a steps:"));
}

TEST_CASE("10 samples in 4 parts are 3, 3, 2 and 2") {
  const Part whole{100, 110};
  CHECK(part_of(whole, 0, 4) == Part{100, 103});
  CHECK(part_of(whole, 1, 4) == Part{103, 106});
  CHECK(part_of(whole, 2, 4) == Part{106, 108});
  CHECK(part_of(whole, 3, 4) == Part{108, 110});
}

TEST_CASE("if the last batch has one sample, all replicas but the first have an empty part") {
  CHECK(Sampler(121, 30, 0, 3).part(4).size() == 1);
  CHECK(Sampler(121, 30, 1, 3).part(4).size() == 0);
  CHECK(Sampler(121, 30, 2, 3).part(4).size() == 0);
}

TEST_CASE("the order of an epoch is a permutation that depends on seed and epoch only") {
  auto order = numbers(epoch_order(1000, 5, 3));
  CHECK(numbers(epoch_order(1000, 5, 3)) == order);
  CHECK(numbers(epoch_order(1000, 5, 4)) != order);
  CHECK(numbers(epoch_order(1000, 6, 3)) != order);
  CHECK(!std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < 1000; ++i) REQUIRE(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("any sample is equally likely at any position of the order") {
  // The position of sample 0 in 2,000 epochs, in 10 bins: chi-square with 9 degrees of freedom, 27.9 at p =
  // 0.001.
  std::vector<double> cells(10);
  for (int epoch = 0; epoch < 2000; ++epoch) {
    const auto order = numbers(epoch_order(50, 1, epoch));
    ++cells[static_cast<std::size_t>((std::find(order.begin(), order.end(), 0) - order.begin()) / 5)];
  }
  double chi_square = 0;
  for (const double count : cells) chi_square += (count - 200) * (count - 200) / 200;
  CHECK(chi_square < 27.9);
}

TEST_CASE("the distributed sampler selects the same samples as PyTorch's DistributedSampler") {
  // Printed by torch 2.13 for seed 3, epoch 2; seed 0, epoch 1; seed 1, epoch 0.
  struct Case {
    std::vector<std::int64_t> permutation;
    std::vector<std::vector<std::int64_t>> replicas;
  };
  const std::vector<Case> cases{
      {{9, 5, 0, 8, 10, 2, 3, 6, 7, 1, 4}, {{9, 10, 7}, {5, 2, 1}, {0, 3, 4}, {8, 6, 9}}},
      {{1, 4, 6, 8, 11, 0, 5, 3, 2, 9, 10, 7}, {{1, 8, 5, 9}, {4, 11, 3, 10}, {6, 0, 2, 7}}},
      {{1, 2, 0}, {{1}, {2}, {0}, {1}, {2}}}};
  for (const Case& c : cases) {
    const auto samples = static_cast<std::int64_t>(c.permutation.size());
    const auto replicas = static_cast<std::int64_t>(c.replicas.size());
    const at::Tensor order = at::tensor(c.permutation, at::kLong);
    for (std::int64_t replica = 0; replica < replicas; ++replica) {
      const Sampler sampler(samples, 2 * replicas, replica, replicas, Sampling::distributed);
      std::vector<std::int64_t> taken;
      for (std::int64_t step = 0; step < sampler.steps(); ++step) {
        const auto indices = numbers(sampler.indices(order, step));
        CHECK(indices.size() <= 2);
        taken.insert(taken.end(), indices.begin(), indices.end());
      }
      CHECK(taken == c.replicas[static_cast<std::size_t>(replica)]);
    }
  }
}

TEST_CASE("the loss is divided by the weight of all replicas, or it is the mean of the replicas' means") {
  // Targets of 1, 2, 3 and 6 tokens without <bos>.
  const models::TextPairs pairs{
      .source = {.tokens = {3, 3, 3, 3}, .offsets = {0, 1, 2, 3, 4}},
      .target = {.tokens = {2, 3, 2, 5, 3, 2, 5, 6, 3, 2, 5, 6, 7, 8, 9, 3}, .offsets = {0, 2, 5, 9, 16}}};
  const PairSplit data(pairs);
  const at::Tensor order = at::arange(4, at::kLong);
  const auto local_batch = [&](std::int64_t replica, Sampling sampling) {
    const LocalBatch of_step = Sampler(4, 4, replica, 2, sampling).local_batch(data, order, 0);
    return std::pair(numbers(of_step.indices), of_step.divisor);
  };
  using Expected = std::pair<std::vector<std::int64_t>, std::int64_t>;
  CHECK(local_batch(0, Sampling::exact) == Expected({0, 1}, 12));
  CHECK(local_batch(1, Sampling::exact) == Expected({2, 3}, 12));
  CHECK(local_batch(0, Sampling::distributed) == Expected({0, 2}, std::int64_t{2} * 4));
  CHECK(local_batch(1, Sampling::distributed) == Expected({1, 3}, std::int64_t{2} * 8));
}

TEST_CASE("each replica gets the whole global batch, including samples that fill it up") {
  const PairSplit data({.source = {.tokens = {3, 3, 3}, .offsets = {0, 1, 2, 3}},
                        .target = {.tokens = {2, 3, 2, 3, 2, 3}, .offsets = {0, 2, 4, 6}}});
  const at::Tensor order = at::tensor({2, 0, 1}, at::kLong);
  for (std::int64_t replica = 0; replica < 2; ++replica) {
    CHECK(numbers(Sampler(3, 2, replica, 2).local_batch(data, order, 0).global_batch) ==
          std::vector<std::int64_t>{2, 0});
    CHECK(numbers(Sampler(3, 2, replica, 2).local_batch(data, order, 1).global_batch) ==
          std::vector<std::int64_t>{1});
    const Sampler distributed(3, 2, replica, 2, Sampling::distributed);
    CHECK(numbers(distributed.local_batch(data, order, 1).global_batch) == std::vector<std::int64_t>{1, 2});
  }
}

TEST_CASE("only the distributed sampler refuses a global batch that is not divisible by the replicas") {
  CHECK(Sampler(10, 5, 0, 2).steps() == 2);
  CHECK_THROWS_WITH_AS(Sampler(10, 5, 0, 2, Sampling::distributed),
                       doctest::Contains("a global batch of 5 samples cannot be divided among 2 replicas"),
                       UserError);
  CHECK(find_sampling("distributed") == Sampling::distributed);
}
