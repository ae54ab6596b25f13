#include <algorithm>
#include <cstdlib>
#include <set>
#include <variant>

#include "runner/data/sampler.h"
#include "runner/data/text_dataset.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner::epoch_order_test {

std::vector<std::int64_t> numbers(const at::Tensor& order) {
  return {order.const_data_ptr<std::int64_t>(), order.const_data_ptr<std::int64_t>() + order.numel()};
}

// `samples` lengths from 1 to 100, equally likely.
at::Tensor random_lengths(std::int64_t samples) {
  return at::arange(samples, at::kLong)
      .mul_(48271)
      .remainder_(2147483647)
      .mul_(48271)
      .remainder_(2147483647)
      .remainder_(100)
      .add_(1);
}

// The fraction of padding if each batch is padded to its longest sample.
double padding(const at::Tensor& lengths, const at::Tensor& order, std::int64_t batch) {
  double filled = 0, all = 0;
  for (std::int64_t begin = 0; begin < order.size(0); begin += batch) {
    const at::Tensor of_batch =
        lengths.index_select(0, order.slice(0, begin, std::min(begin + batch, order.size(0))));
    filled += of_batch.sum().item<double>();
    all += of_batch.max().item<double>() * static_cast<double>(of_batch.size(0));
  }
  return 1 - filled / all;
}

TEST_CASE("the order of texts is a permutation that depends on lengths, global batch, seed and epoch only") {
  const at::Tensor lengths = random_lengths(1003);
  auto order = numbers(epoch_order(lengths, 10, 5, 3));
  CHECK(numbers(epoch_order(lengths.clone(), 10, 5, 3)) == order);
  CHECK(numbers(epoch_order(lengths, 10, 5, 4)) != order);
  CHECK(numbers(epoch_order(lengths, 10, 6, 3)) != order);
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < 1003; ++i) REQUIRE(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("texts of 1 to 100 tokens have less than 3 % padding, instead of half in random order") {
  // 64 random lengths have a maximum of about 98.9 and a mean of 50.5. Each of 50 sorted batches of 64 spans
  // 2 lengths.
  const at::Tensor lengths = random_lengths(64 * 150);
  CHECK(padding(lengths, epoch_order(lengths.size(0), 1, 1), 64) ==
        doctest::Approx(1 - 50.5 / 98.9).epsilon(0.05));
  CHECK(padding(lengths, epoch_order(lengths, 64, 1, 1), 64) < 0.03);
}

TEST_CASE("neither the batches of an epoch nor the samples of a batch are in the order of their lengths") {
  const at::Tensor lengths = random_lengths(4000);
  const at::Tensor by_batch =
      lengths.index_select(0, epoch_order(lengths, 40, 1, 1)).view({100, 40}).to(at::kDouble);
  // The mean goes up or down in 99 steps between batches. In a random order both are equally frequent, within
  // 5 standard errors of √(101/12).
  const at::Tensor means = by_batch.mean(1);
  CHECK(std::abs(means.diff().gt(0).sum().item<double>() - 49.5) < 5 * std::sqrt(101 / 12.));
  const at::Tensor first_half = by_batch.slice(1, 0, 20).mean(),
                   second_half = by_batch.slice(1, 20, 40).mean();
  CHECK(std::abs((first_half - second_half).item<double>()) < 0.2);  // about half of all lengths, if sorted
}

TEST_CASE("an incomplete last batch is a random one, and not the longest samples") {
  const at::Tensor lengths = random_lengths(1050);
  double sum = 0;
  for (int epoch = 1; epoch <= 40; ++epoch) {
    sum += lengths.index_select(0, epoch_order(lengths, 100, 1, epoch).slice(0, 1000))
               .to(at::kDouble)
               .mean()
               .item<double>();
  }
  // 40 means of 50 numbers with deviation 28.9: standard error 0.65
  CHECK(std::abs(sum / 40 - lengths.to(at::kDouble).mean().item<double>()) < 5 * 0.65);
}

TEST_CASE("less than a tenth of the batches of Multi30k is padding, instead of half in random order") {
  const char* directory = std::getenv("TRAINYARD_DATA");
  const auto folder = models::find_folder(models::find_dataset("multi30k"),
                                          directory != nullptr ? directory : "../shared/data");
  if (!folder) {
    MESSAGE("skipped: there is no multi30k in TRAINYARD_DATA or ../shared/data");
    return;
  }
  models::DataChoice choice;
  choice.dataset = choice.source = "multi30k";
  choice.folder = *folder;
  const PairSplit data(std::get<models::TextPairs>(models::read(choice).train));
  const auto padded = [&](const at::Tensor& order) {
    double filled = 0, all = 0;
    for (const at::Tensor& indices : order.split(128)) {
      for (const at::Tensor& tokens : data.inputs(indices)) {
        filled += tokens.ne(0).sum().item<double>();
        all += static_cast<double>(tokens.numel());
      }
    }
    return 1 - filled / all;
  };
  CHECK(padded(epoch_order(data.size(), 1, 1)) > 0.5);
  CHECK(padded(epoch_order(data, 128, 1, 1)) < 0.1);
}

TEST_CASE("if there are fewer samples than a batch, their order is a permutation") {
  const auto order = numbers(epoch_order(random_lengths(7), 10, 1, 1));
  CHECK(std::set<std::int64_t>(order.begin(), order.end()).size() == 7);
}

TEST_CASE("epochs of a number of steps are a stream of passes, and each pass has every sample once") {
  constexpr std::int64_t samples = 6, batch = 4, steps = 5, epochs = 3;  // 60 numbers are ten passes
  const TextDataset data({.tokens = {.tokens = {5, 5, 5, 5, 5, 5}, .offsets = {0, 1, 2, 3, 4, 5, 6}},
                          .labels = {0, 0, 0, 0, 0, 0}});
  std::vector<std::int64_t> stream;
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    const at::Tensor order = epoch_order(data, batch, 7, epoch, steps);
    const Sampler sampler(epoch_samples(data, batch, steps), batch, 0, 1);
    REQUIRE(sampler.steps() == steps);
    for (std::int64_t k = 0; k < steps; ++k) CHECK(sampler.indices(order, k).size(0) == batch);
    const auto part = numbers(order);
    stream.insert(stream.end(), part.begin(), part.end());
  }
  REQUIRE(stream.size() == 60);
  for (std::int64_t pass = 0; pass < 10; ++pass) {
    const std::vector<std::int64_t> orders(stream.begin() + pass * samples,
                                           stream.begin() + (pass + 1) * samples);
    CHECK(orders == numbers(epoch_order(data, batch, 7, pass + 1)));
    CHECK(std::set<std::int64_t>(orders.begin(), orders.end()).size() == samples);
  }
}

TEST_CASE("evaluation reads texts from the shortest to the longest") {
  const TextDataset split(
      {.tokens = {.tokens = {5, 6, 7, 8, 9, 10}, .offsets = {0, 3, 4, 6}}, .labels = {1, 0, 1}});
  CHECK(numbers(evaluation_order(split)) == std::vector<std::int64_t>{1, 2, 0});
}

}  // namespace trainyard::runner::epoch_order_test
