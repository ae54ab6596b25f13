// The data of a run, and its split into training, validation and test part.
//
// The split is a pure function of count, fractions and seed. A seeded permutation is cut into contiguous
// parts:
// - Each sample is in exactly one part.
// - A smaller `train_samples` selects a subset of the same training part.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/samples/samples.h"

namespace trainyard::models {

using SplitIndices = Parts<std::vector<std::int64_t>>;

// Split `samples` samples by the fractions {train, validation, test}.
// - Each fraction is in [0, 1], and they add up to 1. The borders are rounded to the nearest sample.
// - UserError if the fractions are wrong, or if the training part is empty.
SplitIndices split_indices(std::int64_t samples, const std::array<double, 3>& fractions, std::uint64_t seed);

// Called before each picture that is decoded: how many are done, out of how many.
using DecodingProgress = std::function<void(std::int64_t done, std::int64_t all)>;

// Where decoded images are kept.
struct Decoding {
  std::filesystem::path folder = {};  // empty: nowhere
  bool writes = false;                // whether missing files are written
  DecodingProgress progress = {};
};

// The data of one run. It is part of `run.json`.
struct DataChoice {
  std::string dataset;           // the data set in the experiment file: "mnist"
  std::string source;            // the data set that is read: "mnist", or its substitute "synthetic-digits"
  std::filesystem::path folder;  // empty for generated data; not in the run key
  std::filesystem::path decoded = {};  // where decoded images are kept; empty: nowhere; not in the run key
  std::string fingerprint;             // SHA-256 of the unpacked files, or of the generator's recipe
  std::uint64_t split_seed = 0;        // `data_seed` of the experiment file
  // Train, validation, test. If a data set has a part of its own, `fractions_of` adjusts them.
  std::array<double, 3> split{0.8, 0.1, 0.1};
  std::optional<std::int64_t> train_samples;  // size of the training part, if it is limited
  std::int64_t vocabulary_min_frequency = 2;  // texts: words that are rarer in the training part are <unk>
  std::int64_t vocabulary_max_size = 20000;   // texts: largest vocabulary, special tokens included
  std::int64_t image_size = 0;                // height and width to which images are scaled; 0: none are
  std::int64_t window_length = 64;            // windows: tokens that a network reads at once
  std::string tokens = "characters";          // windows: also "words" and "bpe"
  std::string bpe_file = {};                  // of tokens "bpe": a merges.txt; not in the run key
  std::string source_language = {};           // text pairs of the user: "de"; empty: the first of both names
  std::string target_column = {};             // rows: the name of the column to predict
  std::string input_columns = {};      // rows: names of the input columns, with commas; empty: all others
  std::string target_kind = "number";  // rows: "number" or "class"
  // Computed together with the fingerprint; not in the run key.
  InputShape input;
  std::int64_t available = 0;  // training samples without the limit of `train_samples`; 0: not known
  bool operator==(const DataChoice&) const = default;
};

// Number of samples in each part of a data set, before the split.
using PartSizes = Parts<std::int64_t>;

// The fractions by which the training part of a data set is split.
// A part that the data set already has gets 0. The other fractions keep their proportion and add up to 1.
// UserError if they are all 0.
std::array<double, 3> fractions_of(const DataChoice& choice, bool own_validation, bool own_test);

// The number of samples to train on, out of `available`. UserError if `train_samples` is larger.
std::int64_t train_count(const DataChoice& choice, std::int64_t available);

// UserError if `found` differs from the fingerprint of the choice. An empty fingerprint is not compared.
void check_fingerprint(const DataChoice& choice, const std::string& found);

// The number of samples that a run trains on if the data set has parts of these sizes.
// UserError if the training part is empty, or smaller than `train_samples`.
std::int64_t training_samples(const DataChoice& choice, PartSizes sizes);

template <typename T>
PartSizes sizes_of(const Parts<T>& parts) {
  return {.train = parts.train.size(), .validation = parts.validation.size(), .test = parts.test.size()};
}

// Turn the parts of a data set into the parts of a run.
// - If the data set has no training part, its test part is used as one.
// - A validation or test part of the data set stays whole. A missing one is split off the training part.
// - Then the training part is limited to `train_samples`.
// T has `size()` and a function `selected(const T&, indices)`.
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
