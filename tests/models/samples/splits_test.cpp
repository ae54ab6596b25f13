#include "models/samples/splits.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "models/samples/random.h"
#include "tests/support/data_folder.h"

using namespace trainyard::models;
using trainyard::tests::user_error_of;

namespace {

std::vector<int> times_used(const SplitIndices& split, std::int64_t samples) {
  std::vector<int> used(static_cast<std::size_t>(samples));
  for (const auto* part : {&split.train, &split.validation, &split.test}) {
    for (const std::int64_t index : *part) ++used.at(static_cast<std::size_t>(index));
  }
  return used;
}

}  // namespace

TEST_CASE("ten thousand samples are split into 8000, 1000 and 1000") {
  const SplitIndices split = split_indices(10'000, {0.8, 0.1, 0.1}, 0);
  CHECK(split.train.size() == 8000);
  CHECK(split.validation.size() == 1000);
  CHECK(split.test.size() == 1000);
}

TEST_CASE(
    "for any count, fractions and seed each sample is in exactly one part, and each part has its size to "
    "within one sample") {
  SplitMix64 random(3);
  for (int round = 0; round < 300; ++round) {
    const auto samples = static_cast<std::int64_t>(10 + random.below(500));
    const double train = random.between(0.2, 1);
    const double validation = random.between(0, 1 - train);
    const std::uint64_t seed = random.next();
    const std::array<double, 3> fractions{train, validation, 1 - train - validation};
    const SplitIndices split = split_indices(samples, fractions, seed);
    CHECK(times_used(split, samples) == std::vector<int>(static_cast<std::size_t>(samples), 1));
    const auto off = [&](const std::vector<std::int64_t>& part, double fraction) {
      return std::abs(static_cast<double>(part.size()) - fraction * static_cast<double>(samples));
    };
    CHECK(off(split.train, fractions[0]) <= 1);
    CHECK(off(split.validation, fractions[1]) <= 1);
    CHECK(off(split.test, fractions[2]) <= 1);
    CHECK(split_indices(samples, fractions, seed).train == split.train);
    CHECK(split_indices(samples, fractions, seed + 1).train != split.train);
  }
}

TEST_CASE("a part with fraction 0 is empty, even if the other fractions are rounded") {
  for (std::int64_t samples = 2; samples < 200; ++samples) {
    const double third = 1.0 / 3;
    CHECK(split_indices(samples, {third + third, 1 - third - third, 0}, 1).test.empty());
    CHECK(split_indices(samples, {0.7, 0, 0.3}, 1).validation.empty());
  }
}

TEST_CASE("if a data set has a part of its own, the rest is split in the same proportion") {
  const DataChoice choice;  // 0.8, 0.1, 0.1
  const auto fractions = fractions_of(choice, false, true);
  CHECK(fractions[0] == doctest::Approx(8.0 / 9));
  CHECK(fractions[1] == doctest::Approx(1.0 / 9));
  const auto own_validation = fractions_of(choice, true, false);
  CHECK(own_validation[0] == doctest::Approx(8.0 / 9));
  CHECK(own_validation[1] == 0);
  CHECK(own_validation[2] == doctest::Approx(1.0 / 9));
  CHECK(fractions_of(choice, false, false) == choice.split);
  CHECK(fractions_of(choice, true, true) == std::array<double, 3>{1, 0, 0});
  const SplitIndices split = split_indices(60'000, fractions, 0);
  CHECK(split.train.size() == 53'333);
  CHECK(split.validation.size() == 6'667);
  CHECK(split.test.empty());
}

TEST_CASE("fractions that do not add up to 1, and fractions that leave nothing to train on, are errors") {
  for (const auto& wrong : {std::array{0.8, 0.1, 0.2}, std::array{1.1, -0.1, 0.0},
                            std::array{std::numeric_limits<double>::quiet_NaN(), 0.5, 0.5}}) {
    CHECK(user_error_of([&] { split_indices(10, wrong, 0); }) ==
          "the fractions of train, validation and test must be in [0, 1] and add up to 1");
  }
  CHECK(user_error_of([] {
          split_indices(10, {0.01, 0.49, 0.5}, 0);
        }) == "the split leaves 0 of 10 samples to train on; increase the first number of data_split");
  DataChoice choice;
  choice.split = {0, 0, 1};
  CHECK(user_error_of([&] { fractions_of(choice, false, true); }) ==
        "the split leaves nothing to train on: its fractions of train and validation are 0; increase the "
        "first number of data_split");
}

TEST_CASE("samples are selected in the order of the indices") {
  const Images images{.shape = {1, 1, 2}, .pixels = {0, 1, 10, 11, 20, 21}, .labels = {5, 6, 7}};
  const Images some = selected(images, {2, 0});
  CHECK(some.pixels == std::vector<std::uint8_t>{20, 21, 0, 1});
  CHECK(some.labels == std::vector<std::int32_t>{7, 5});
  CHECK(some.shape == images.shape);
}
