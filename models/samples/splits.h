// Which sample belongs to which part: a pure function of count, fractions and seed. Contiguous runs of one
// seeded permutation, so that each sample is in exactly one part and a smaller `train_samples` takes a
// subset.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace trainyard::models {

struct SplitIndices {
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> validation;
  std::vector<std::int64_t> test;
};

// Fractions {train, validation, test}, each in [0, 1], that add up to 1; the borders between the parts are
// rounded to the nearest sample. UserError where that leaves nothing to train on.
SplitIndices split_indices(std::int64_t samples, const std::array<double, 3>& fractions, std::uint64_t seed);

// How many of `samples` are to train on. UserErrors as above.
std::int64_t train_size(std::int64_t samples, const std::array<double, 3>& fractions);

// For a data set with its own test part: {train, validation} in the same proportion, no test.
std::array<double, 3> without_test(const std::array<double, 3>& fractions);

// For a data set with its own validation part: {train, no validation, test} in the same proportion.
std::array<double, 3> without_validation(const std::array<double, 3>& fractions);

}  // namespace trainyard::models
