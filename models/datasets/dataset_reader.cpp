// Implementation of `facts`, `read` and `accepted_names` (datasets.h).
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "models/datasets/datasets.h"
#include "models/datasets/row_data.h"
#include "models/datasets/synthetic_digits.h"
#include "models/datasets/text_data.h"
#include "models/datasets/window_data.h"
#include "models/readers/image_decoder.h"
#include "models/readers/image_folder.h"
#include "models/readers/image_readers.h"
#include "models/readers/text_readers.h"
#include "models/samples/splits.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_empty(const Dataset& dataset, const fs::path& folder) {
  throw UserError(fmt::format("\"{}\" has no file of {}", folder.string(), dataset.name),
                  fmt::format("its files are {}{}", joined(dataset.files),
                              dataset.format == DataFormat::idx ? ", plain or .gz" : ""));
}

// Adds the name of the part, the bytes that `read` reads, and the number of samples to the hash.
template <typename Read>
void read_hashed(const std::string& part, Sha256& hash, const Read& read) {
  hash.update(part + "\n");
  hash.update(fmt::format("{}\n", read()));
}

ReadImages read_parts(const Dataset& dataset, const fs::path& folder) {
  ReadImages found;
  Parts<Images>& parts = found.parts;
  for (Images* part : parts.all()) part->shape = dataset.shape;
  if (!fs::is_directory(folder)) fail_empty(dataset, folder);
  Sha256 hash;
  if (dataset.format == DataFormat::cifar10) {
    for (const std::string& name : dataset.files) {
      const bool test = name == dataset.files.back();
      if (!fs::exists(folder / name))
        throw UserError(fmt::format("{} is missing", (folder / name).string()),
                        "download the data set again");
      read_hashed(test ? "test" : "train", hash,
                  [&] { return read_cifar10_file(folder / name, test ? &parts.test : &parts.train, &hash); });
    }
  } else {
    const auto train = find_idx_part(folder, "train"), test = find_idx_part(folder, "t10k");
    if (!train && !test) fail_empty(dataset, folder);
    const auto read = [&](const IdxPart& part, Images& images) {
      return read_idx_part(part, dataset.shape, dataset.classes, &images, &hash);
    };
    if (train) read_hashed("train", hash, [&] { return read(*train, parts.train); });
    if (test) read_hashed("test", hash, [&] { return read(*test, parts.test); });
  }
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

// Those that are not drawn.
ReadImages read_images(const Dataset& source, const fs::path& folder, const DataChoice& choice,
                       const Decoding& decoding) {
  if (source.format != DataFormat::image_folder) return read_parts(source, folder);
  return read_image_folder(folder, choice.image_size > 0 ? choice.image_size : usual_image_size, decoding);
}

DataFacts drawn_facts(const Dataset& source, const DataChoice& choice) {
  return {.fingerprint = recipe_fingerprint(source, choice.split_seed),
          .input = input_shape(source, choice),
          .sizes = {.train = synthetic_size(SyntheticPart::train),
                    .validation = synthetic_size(SyntheticPart::validation),
                    .test = synthetic_size(SyntheticPart::test)}};
}

Splits scaled(Splits splits, std::int64_t size) {
  if (size > 0)
    for (Samples* part : splits.all()) *part = scaled(std::get<Images>(*part), size);
  return splits;
}

}  // namespace

std::vector<std::string> accepted_names(const Dataset& dataset) {
  std::vector<std::string> names;
  if (dataset.format == DataFormat::multi30k || dataset.format == DataFormat::whole_text) {
    for (const std::string& name : dataset.files) names.insert(names.end(), {name, name + ".gz"});
    return names;
  }
  if (dataset.format != DataFormat::idx) return dataset.files;
  for (const char* prefix : {"train", "t10k"}) {
    for (const auto& each : {idx_images_names(prefix), idx_labels_names(prefix)}) {
      names.insert(names.end(), each.begin(), each.end());
    }
  }
  return names;
}

DataFacts facts(const Dataset& source, const fs::path& folder, const DataChoice& choice,
                const Decoding& decoding) {
  if (source.kind == DataKind::rows) return row_facts(source, folder, choice);
  if (source.kind == DataKind::windows) return window_facts(source, folder, choice);
  if (source.kind != DataKind::images) return text_facts(source, folder, choice);
  if (source.generated()) return drawn_facts(source, choice);
  const ReadImages found = read_images(source, folder, choice, decoding);
  InputShape input = input_shape(source, choice);
  if (source.format == DataFormat::image_folder) {
    input.image = found.parts.train.shape;
    input.classes = found.classes;
  }
  return {.fingerprint = found.fingerprint, .input = input, .sizes = sizes_of(found.parts)};
}

Splits read(const DataChoice& choice) {
  const Dataset& source = find_dataset(choice.source);
  if (source.kind == DataKind::rows) return read_rows(choice);
  if (source.kind == DataKind::windows) return read_windows(source, choice);
  if (source.kind != DataKind::images) return read_texts(source, choice);
  if (source.generated()) {
    check_fingerprint(choice, recipe_fingerprint(source, choice.split_seed));
    return scaled(drawn(source, choice), choice.image_size);
  }
  ReadImages found = read_images(source, choice.folder, choice, {.folder = choice.decoded});
  check_fingerprint(choice, found.fingerprint);
  Splits splits =
      divided(choice, std::move(found.parts)).each([](Images& part) -> Samples { return std::move(part); });
  // pictures of a folder are scaled when they are decoded, and arrays keep their size
  return source.format == DataFormat::image_folder ? splits : scaled(std::move(splits), choice.image_size);
}

std::vector<std::string> own_class_names(const DataChoice& choice) {
  const DataFormat format = find_dataset(choice.source).format;
  std::vector<std::string> names;
  if (format == DataFormat::image_folder) names = image_class_names(choice.folder);
  if (format == DataFormat::text_folder) names = text_class_names(choice.folder);
  if (format == DataFormat::csv) names = row_class_names(choice);
  for (std::string& name : names) name = printable_line(name);
  return names;
}

}  // namespace trainyard::models
