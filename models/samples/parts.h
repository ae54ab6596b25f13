// The parts of a data set as its source has them, and how they become the parts of a run: the same for images
// and texts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/samples/data_choice.h"
#include "models/samples/splits.h"

namespace trainyard::models {

// T has `size()` and `selected(const T&, indices)`. A part that the source does not have is empty.
template <typename T>
struct Parts {
  T train;
  T validation;
  T test;
};

// The choice's fractions where the source has parts of its own, which stay whole.
std::array<double, 3> fractions_of(const DataChoice& choice, bool own_validation, bool own_test);

// How many of `available` samples to train on. UserError where `train_samples` is more.
std::int64_t train_count(const DataChoice& choice, std::int64_t available);

// UserError where `found` is not what the choice was resolved with.
void check_fingerprint(const DataChoice& choice, const std::string& found);

// How many samples a run would train on: what `read` makes of these parts. UserError where the split leaves
// none, or `train_samples` is more than there is.
std::int64_t training_samples(const DataChoice& choice, PartSizes sizes);

template <typename T>
PartSizes sizes_of(const Parts<T>& parts) {
  return {.train = parts.train.size(), .validation = parts.validation.size(), .test = parts.test.size()};
}

// A validation part and a test part of the source are kept whole; what it lacks is cut from the training part
// (or from the test part, where that is all there is) as the choice says; then the training part is capped.
template <typename T>
Parts<T> divided(const DataChoice& choice, Parts<T> parts) {
  if (parts.train.size() == 0) std::swap(parts.train, parts.test);
  const bool own_test = parts.test.size() > 0;
  const bool own_validation = parts.validation.size() > 0;
  const std::array<double, 3> fractions = fractions_of(choice, own_validation, own_test);
  SplitIndices indices = split_indices(parts.train.size(), fractions, choice.split_seed);
  indices.train.resize(
      static_cast<std::size_t>(train_count(choice, static_cast<std::int64_t>(indices.train.size()))));
  return {
      .train = selected(parts.train, indices.train),
      .validation = own_validation ? std::move(parts.validation) : selected(parts.train, indices.validation),
      .test = own_test ? std::move(parts.test) : selected(parts.train, indices.test)};
}

}  // namespace trainyard::models
