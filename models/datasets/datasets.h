// Table of data sets, and functions to find, fingerprint and read them.
// Samples are plain arrays, which `runner` converts to tensors. No LibTorch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/samples/samples.h"
#include "models/samples/splits.h"

namespace trainyard::models {

// `drawn_digits` and `texts` are generated data.
enum class DataFormat {
  idx,
  cifar10,
  imdb,
  multi30k,
  whole_text,
  image_folder,
  text_folder,
  text_pairs,
  own_text,
  csv,
  drawn_digits,
  texts
};

struct Dataset {
  std::string name;   // "mnist"
  std::string title;  // "MNIST"
  DataKind kind = DataKind::images;
  ImageShape shape{0, 0, 0};  // of images
  std::int64_t classes = 0;   // 0 for pairs and windows, and if only the data has them
  std::int64_t source_length = 0, target_length = 0;  // typical tokens per sample
  std::vector<std::string> folders = {};  // possible names of its folder or archive, in this order
  std::vector<std::string> files = {};    // the names of its files, for `trainyard list` and messages
  std::string stand_in =
      {};             // generated data set for `= "synthetic"`; its own name if generated; may be empty
  std::string about;  // one line: size, format, source
  DataFormat format = DataFormat::idx;
  bool generated() const { return stand_in == name; }
};

std::span<const Dataset> datasets();
std::vector<std::string> dataset_names();
const Dataset& find_dataset(std::string_view name);  // UserError if there is no such data set
std::string_view kind_name(
    DataKind kind);  // "images", "texts", "text pairs", "windows of a text", "rows of a table"

// The input of a model before any data is read. Vocabularies of words have their default maximum size.
InputShape input_shape(const Dataset& dataset);
// The same with the image size of the choice. The images of "folder" may have any shape: {0, 0, 0}.
InputShape input_shape(const Dataset& dataset, const DataChoice& choice);

inline constexpr std::int64_t usual_image_size = 32;  // of the pictures of "folder"

// The folder or archive of `dataset`: one of its `folders` in `directory`, or `directory` itself.
// Empty if none of its files is there.
std::optional<std::filesystem::path> find_folder(const Dataset& dataset,
                                                 const std::filesystem::path& directory);

// All possible names of its files, in every spelling.
std::vector<std::string> accepted_names(const Dataset& dataset);

// Properties that are known only after the data was read.
struct DataFacts {
  // SHA-256 (64 hexadecimal digits) of the unpacked content of all files, in a fixed order. For generated
  // data it is the SHA-256 of name, version and seed.
  std::string fingerprint;
  InputShape input;
  PartSizes sizes;
};

// The facts of `source` in `folder`, if it is split and prepared as in `choice`.
// - `source`, `folder`, `fingerprint` and `input` of the choice are ignored.
// - All files are checked as `read` checks them. UserError for a missing or damaged file.
DataFacts facts(const Dataset& source, const std::filesystem::path& folder, const DataChoice& choice,
                const Decoding& decoding = {});

// Read or generate the data of a run, and split it.
// - Each sample is in exactly one part. The parts are a pure function of the choice.
// - UserError for a missing or damaged file, for a fingerprint other than `choice.fingerprint` (unless that
//   is empty), and if `train_samples` is too large.
Splits read(const DataChoice& choice);

// Names of the classes of the user's own data, in the order of the labels: those of the class folders, or of a table.
// Control characters are escaped. Empty for other data, and if classes have only numbers.
std::vector<std::string> own_class_names(const DataChoice& choice);

}  // namespace trainyard::models
