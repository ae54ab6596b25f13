// Implementation of `facts`, `read` and `accepted_names` (datasets.h).
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "models/datasets/datasets.h"
#include "models/datasets/synthetic_digits.h"
#include "models/datasets/text_data.h"
#include "models/datasets/window_data.h"
#include "models/readers/image_folder.h"
#include "models/readers/image_readers.h"
#include "models/samples/splits.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

// Reads one file, or an IDX pair of files. Appends to the images and adds the bytes to the hash.
using Reader = std::function<std::int64_t(Images*, Sha256*)>;

// Readers for the files of a data set, in the order in which they are read.
struct Readers {
  std::vector<Reader> train;
  std::vector<Reader> test;
};

Readers idx_readers(const Dataset& dataset, const fs::path& folder) {
  const auto reader = [&](const std::string& prefix) -> std::vector<Reader> {
    const auto part = find_idx_part(folder, prefix);
    if (!part) return {};
    return {[part, shape = dataset.shape, classes = dataset.classes](Images* images, Sha256* hash) {
      return read_idx_part(*part, shape, classes, images, hash);
    }};
  };
  return {.train = reader("train"), .test = reader("t10k")};
}

Reader cifar10_reader(const fs::path& path) {
  if (!fs::exists(path))
    throw UserError(fmt::format("{} is missing", path.string()), "download the data set again");
  return [path](Images* images, Sha256* hash) { return read_cifar10_file(path, images, hash); };
}

Readers cifar10_readers(const fs::path& folder) {
  Readers readers;
  for (const std::string& name : cifar10_train_names())
    readers.train.push_back(cifar10_reader(folder / name));
  readers.test.push_back(cifar10_reader(folder / cifar10_test_name()));
  return readers;
}

[[noreturn]] void fail_empty(const Dataset& dataset, const fs::path& folder) {
  throw UserError(fmt::format("\"{}\" has no file of {}", folder.string(), dataset.name),
                  fmt::format("its files are {}{}", joined(dataset.files),
                              dataset.format == DataFormat::idx ? ", plain or .gz" : ""));
}

Readers readers_of(const Dataset& dataset, const fs::path& folder) {
  if (!fs::is_directory(folder)) fail_empty(dataset, folder);
  Readers readers =
      dataset.format == DataFormat::idx ? idx_readers(dataset, folder) : cifar10_readers(folder);
  if (readers.train.empty() && readers.test.empty()) fail_empty(dataset, folder);
  return readers;
}

std::int64_t read_part(const std::string& name, const std::vector<Reader>& readers, Images* images,
                       Sha256& hash) {
  std::int64_t all = 0;
  for (const Reader& reader : readers) {
    hash.update(name + "\n");
    const std::int64_t count = reader(images, &hash);
    hash.update(fmt::format("{}\n", count));
    all += count;
  }
  return all;
}

// Read both parts. If `train` or `test` is null, its part is only checked, counted and hashed.
DataFacts read_parts(const Dataset& dataset, const fs::path& folder, Images* train, Images* test) {
  const Readers readers = readers_of(dataset, folder);
  Sha256 hash;
  DataFacts found{.fingerprint = {}, .input = input_shape(dataset), .sizes = {}};
  found.sizes.train = read_part("train", readers.train, train, hash);
  found.sizes.test = read_part("test", readers.test, test, hash);
  found.fingerprint = hash.hex();
  return found;
}

std::string recipe_fingerprint(const Dataset& dataset, std::uint64_t seed) {
  return sha256_hex(fmt::format("{} version {} seed {}", dataset.name, synthetic_digits_version, seed));
}

Splits drawn(const Dataset& dataset, const DataChoice& choice) {
  const auto part = [&](SyntheticPart name, std::int64_t count) {
    return draw_digits(dataset.shape, choice.split_seed, name, count);
  };
  return {.train = part(SyntheticPart::train, train_count(choice, synthetic_size(SyntheticPart::train))),
          .validation = part(SyntheticPart::validation, synthetic_size(SyntheticPart::validation)),
          .test = part(SyntheticPart::test, synthetic_size(SyntheticPart::test))};
}

DataFacts folder_facts(const Dataset& source, const fs::path& folder, const DataChoice& choice) {
  Sha256 hash;
  const FolderImages found = read_image_folder(folder, choice.image_size, hash);
  InputShape input = input_shape(source);
  input.image = found.parts.train.shape;
  input.classes = found.classes;
  return {.fingerprint = hash.hex(), .input = input, .sizes = sizes_of(found.parts)};
}

DataFacts drawn_facts(const Dataset& source, std::uint64_t seed) {
  return {.fingerprint = recipe_fingerprint(source, seed),
          .input = input_shape(source),
          .sizes = {.train = synthetic_size(SyntheticPart::train),
                    .validation = synthetic_size(SyntheticPart::validation),
                    .test = synthetic_size(SyntheticPart::test)}};
}

Parts<Images> read_image_parts(const Dataset& source, const DataChoice& choice) {
  Parts<Images> parts;
  if (source.format == DataFormat::image_folder) {
    Sha256 hash;
    parts = read_image_folder(choice.folder, choice.image_size, hash).parts;
    check_fingerprint(choice, hash.hex());
    return parts;
  }
  parts.train.shape = parts.validation.shape = parts.test.shape = source.shape;
  check_fingerprint(choice, read_parts(source, choice.folder, &parts.train, &parts.test).fingerprint);
  return parts;
}

std::vector<std::string> plain_or_gz(const std::vector<std::string>& names) {
  std::vector<std::string> both;
  for (const std::string& name : names) both.insert(both.end(), {name, name + ".gz"});
  return both;
}

}  // namespace

std::vector<std::string> accepted_names(const Dataset& dataset) {
  if (dataset.format == DataFormat::multi30k || dataset.format == DataFormat::whole_text)
    return plain_or_gz(dataset.files);
  if (dataset.format != DataFormat::idx) return dataset.files;
  std::vector<std::string> names;
  for (const char* prefix : {"train", "t10k"}) {
    for (const auto& each : {idx_images_names(prefix), idx_labels_names(prefix)}) {
      names.insert(names.end(), each.begin(), each.end());
    }
  }
  return names;
}

DataFacts facts(const Dataset& source, const fs::path& folder, const DataChoice& choice) {
  if (source.kind == DataKind::windows) return window_facts(source, folder, choice);
  if (source.kind != DataKind::images) return text_facts(source, folder, choice, user_cache());
  if (source.format == DataFormat::image_folder) return folder_facts(source, folder, choice);
  return source.generated() ? drawn_facts(source, choice.split_seed)
                            : read_parts(source, folder, nullptr, nullptr);
}

Splits read(const Dataset& source, const DataChoice& choice) {
  if (source.kind == DataKind::windows) return read_windows(source, choice);
  if (source.kind != DataKind::images) return read_texts(source, choice, user_cache());
  if (source.generated()) {
    check_fingerprint(choice, recipe_fingerprint(source, choice.split_seed));
    return drawn(source, choice);
  }
  Parts<Images> parts = divided(choice, read_image_parts(source, choice));
  return {.train = std::move(parts.train),
          .validation = std::move(parts.validation),
          .test = std::move(parts.test)};
}

}  // namespace trainyard::models
