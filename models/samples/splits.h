// Which data a run reads, and how it becomes the training, validation and test part.
//
// Which sample belongs to which part: a pure function of count, fractions and seed. Contiguous runs of one
// seeded permutation, so that each sample is in exactly one part and a smaller `train_samples` takes a
// subset.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/samples/samples.h"

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

// Which data a run reads and how it is divided: plain values, without the table of data sets.

// What one run reads, resolved. A value: it stands in `run.json`, and all but `folder` in the run key.
struct DataChoice {
  std::string dataset;           // what the file asked for: "mnist"
  std::string source;            // what is read: "mnist", or its stand-in "synthetic-digits"
  std::filesystem::path folder;  // empty for generated data
  std::string fingerprint;       // SHA-256 of the unpacked content, or of the generator's recipe
  std::uint64_t split_seed = 0;  // `data_seed` of the file
  std::array<double, 3> split{
      0.8, 0.1, 0.1};  // train, validation, test: for a data set in one part; of one with
                       // its own test part, validation is split[1]/(split[0]+split[1]) of the rest
  std::optional<std::int64_t> train_samples;  // a cap on the training part
  std::int64_t vocabulary_min_frequency = 2;  // texts: a rarer word of the training part is <unk>
  std::int64_t vocabulary_max_size = 20000;   // texts: tokens of a vocabulary at most, special ones included
  std::int64_t image_size = 32;               // "folder": height and width of what is read
  InputShape input;                           // resolved with the fingerprint; not in the run key
  bool operator==(const DataChoice&) const = default;
};

// Samples that the source has of each part, before anything is split.
struct PartSizes {
  std::int64_t train = 0, validation = 0, test = 0;
};

// The parts of a data set as its source has them, and how they become the parts of a run: the same for images
// and texts.

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
