// What can be trained on: one row a data set, its reader to plain arrays, its fingerprint, its synthetic
// stand-in. No LibTorch, no processes: `runner` turns the arrays into tensors, `experiments` resolves which
// data a run uses, `trainyard list datasets` prints the rows.
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

enum class DataFormat {
  idx,
  cifar10,
  imdb,
  multi30k,
  image_folder,
  drawn_digits,
  texts
};  // the last two: generated

// One row of the table.
struct Dataset {
  std::string name;   // "mnist"
  std::string title;  // "MNIST"
  DataKind kind = DataKind::images;
  ImageShape shape;                                   // {0, 0, 0} for texts
  std::int64_t classes = 10;                          // 0 for translations, and where only the data tells
  std::int64_t source_length = 0, target_length = 0;  // typical tokens a sample
  std::vector<std::string>
      folders;                     // names (of archives too) under which a data directory holds it, in order
  std::vector<std::string> files;  // what the folder must or may hold, for `list` and error texts
  std::string stand_in;  // the generated data set that "synthetic" means; its own name if generated, empty
                         // where there is none
  std::string about;     // one line: size, format, source
  DataFormat format = DataFormat::idx;
  bool generated() const { return stand_in == name; }
};

std::span<const Dataset> datasets();
std::vector<std::string> dataset_names();
const Dataset& find_dataset(std::string_view name);  // UserError «did you mean …»
std::string_view kind_name(DataKind kind);           // "images", "texts", "text pairs"

// What is known of the input before any data is read: vocabularies have the largest size that is the default.
InputShape input_shape(const Dataset& dataset);

// The folder or archive that holds `dataset` in or below `directory` (its `folders` names, or `directory`
// itself); nothing where none of its files is there.
std::optional<std::filesystem::path> find_folder(const Dataset& dataset,
                                                 const std::filesystem::path& directory);

// Every file name that the folder may hold, all spellings.
std::vector<std::string> accepted_names(const Dataset& dataset);

// What the data itself tells.
struct DataFacts {
  // SHA-256 (64 hexadecimal digits) of the unpacked content of all files that `read` would use, in a fixed
  // order; of generated data: name, version and seed.
  std::string fingerprint;
  InputShape input;
  PartSizes sizes;
};

// The facts of `source` in `folder`, as `choice` splits and prepares it; its own `source`, `folder`,
// `fingerprint` and `input` are not looked at. Checks the files as `read` does. UserError names a file that
// is missing and where it was looked for, or the file and the byte of what is truncated, has a wrong magic
// number, goes on after its end, or has labels that do not fit.
DataFacts facts(const Dataset& source, const std::filesystem::path& folder, const DataChoice& choice);

// Of `facts`, the fingerprint alone, with everything of the choice but `data_seed` as it is by default.
std::string fingerprint(const Dataset& source, const std::filesystem::path& folder, std::uint64_t data_seed);

// Reads or generates, splits and caps. Each sample is in exactly one part; the parts are a pure function of
// the choice. UserError as `facts`, and where the content is not that of `choice.fingerprint` (unless
// that is empty), or where `train_samples` is more than there is.
Splits read(const DataChoice& choice);

}  // namespace trainyard::models
