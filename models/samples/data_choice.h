// Which data a run reads and how it is divided: plain values, without the table of data sets.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "models/samples/samples.h"

namespace trainyard::models {

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

}  // namespace trainyard::models
