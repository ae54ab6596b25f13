#include "models/datasets/datasets.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <system_error>

#include "base/named_row.h"
#include "models/datasets/row_data.h"
#include "models/readers/image_folder.h"
#include "models/readers/text_readers.h"

namespace trainyard::models {

namespace {

constexpr ImageShape grey28{.channels = 1, .height = 28, .width = 28};
constexpr ImageShape color32{.channels = 3, .height = 32, .width = 32};

const std::vector<std::string>& idx_files() {
  static const std::vector<std::string> names{"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                              "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  return names;
}

std::array<Dataset, 16> all_datasets() {
  return {
      {{.name = "mnist",
        .title = "MNIST",
        .shape = grey28,
        .classes = 10,
        .folders = {"mnist", "MNIST/raw", "MNIST"},
        .files = idx_files(),
        .stand_in = "synthetic-digits",
        .about = "70,000 handwritten digits, 28x28 grey; IDX files, plain or .gz, train or t10k or both",
        .format = DataFormat::idx},
       {.name = "fashion-mnist",
        .title = "Fashion-MNIST",
        .shape = grey28,
        .classes = 10,
        .folders = {"fashion-mnist", "FashionMNIST/raw", "FashionMNIST"},
        .files = idx_files(),
        .stand_in = "synthetic-digits",
        .about = "70,000 pieces of clothing, 28x28 grey; IDX files, plain or .gz, train or t10k or both",
        .format = DataFormat::idx},
       {.name = "cifar10",
        .title = "CIFAR-10",
        .shape = color32,
        .classes = 10,
        .folders = {"cifar-10-batches-bin", "cifar10"},
        .files = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                  "data_batch_5.bin", "test_batch.bin"},
        .stand_in = "synthetic-color-digits",
        .about = "60,000 photographs of 10 kinds of things, 32x32 RGB; the binary version's batches",
        .format = DataFormat::cifar10},
       {.name = "imdb",
        .title = "IMDb reviews",
        .kind = DataKind::texts,
        .classes = 2,
        .source_length = 240,
        .folders = {"aclImdb", "aclImdb_v1.tar.gz", "aclImdb.tar.gz", "aclImdb_subset.tar.gz", "imdb"},
        .files = {"train/pos", "train/neg", "test/pos", "test/neg"},
        .stand_in = "synthetic-reviews",
        .about = "50,000 film reviews, good or bad; folder aclImdb, or its .tar.gz without unpacking",
        .format = DataFormat::imdb},
       {.name = "multi30k",
        .title = "Multi30k",
        .kind = DataKind::text_pairs,
        .source_length = 14,
        .target_length = 15,
        .folders = {"multi30k", "multi30k/data/task1/raw"},
        .files = {"train.de", "train.en", "val.de", "val.en", "test_2016_flickr.de", "test_2016_flickr.en"},
        .stand_in = "synthetic-phrases",
        .about = "31,014 descriptions of pictures, German and English; one sentence per line, plain or .gz",
        .format = DataFormat::multi30k},
       {.name = "tiny-shakespeare",
        .title = "Tiny Shakespeare",
        .kind = DataKind::windows,
        .folders = {"tiny-shakespeare"},
        .files = {"input.txt"},
        .stand_in = "synthetic-prose",
        .about =
            "1,115,394 characters of plays; one text, plain or .gz: 90 % train, 5 % validation, 5 % test",
        .format = DataFormat::whole_text},
       {.name = "folder",
        .title = "Own images",
        .shape = color32,
        .files = {"CLASS/*.png", "CLASS/*.jpg", "train-images.npy", "train-labels.npy"},
        .about =
            "one folder per class with PNG or JPEG (also below train, validation, test), or arrays *.npy",
        .format = DataFormat::image_folder},
       {.name = "text-folder",
        .title = "Own texts",
        .kind = DataKind::texts,
        .files = {"CLASS/*.txt"},
        .about = "one folder per class with .txt files (also below train, validation, test)",
        .format = DataFormat::text_folder},
       {.name = "text-pairs",
        .title = "Own translations",
        .kind = DataKind::text_pairs,
        .files = {"train.LANGUAGE", "validation.LANGUAGE", "test.LANGUAGE"},
        .about = "files train.LANGUAGE of two languages, plain or .gz (also validation, test); one sentence "
                 "per line",
        .format = DataFormat::text_pairs},
       {.name = "text",
        .title = "Own text",
        .kind = DataKind::windows,
        .files = {"*.txt"},
        .about = "one file, or a folder of .txt files, plain or .gz: 90 % train, 5 % validation, 5 % test",
        .format = DataFormat::own_text},
       {.name = "csv",
        .title = "Own table",
        .kind = DataKind::rows,
        .files = {"data.csv", "train.csv", "validation.csv", "test.csv"},
        .about =
            "rows of a table: data.csv, or train.csv with validation.csv and test.csv; needs target_column",
        .format = DataFormat::csv},
       {.name = "synthetic-digits",
        .title = "Synthetic digits",
        .shape = grey28,
        .classes = 10,
        .stand_in = "synthetic-digits",
        .about = "6,000 digits drawn from a seed, 28x28 grey: 4,000 train, 1,000 validation, 1,000 test",
        .format = DataFormat::drawn_digits},
       {.name = "synthetic-color-digits",
        .title = "Synthetic color digits",
        .shape = color32,
        .classes = 10,
        .stand_in = "synthetic-color-digits",
        .about =
            "6,000 digits drawn from a seed, 32x32 RGB on texture: 4,000 train, 1,000 validation, 1,000 test",
        .format = DataFormat::drawn_digits},
       {.name = "synthetic-reviews",
        .title = "Synthetic reviews",
        .kind = DataKind::texts,
        .classes = 2,
        .source_length = 48,
        .stand_in = "synthetic-reviews",
        .about = "3,000 short reviews made from a seed, good or bad: 2,000 train, 500 validation, 500 test",
        .format = DataFormat::texts},
       {.name = "synthetic-phrases",
        .title = "Synthetic phrases",
        .kind = DataKind::text_pairs,
        .source_length = 11,
        .target_length = 12,
        .stand_in = "synthetic-phrases",
        .about = "2,500 German sentences made from a seed and their English: 2,000 train, 250 validation, "
                 "250 test",
        .format = DataFormat::texts},
       {.name = "synthetic-prose",
        .title = "Synthetic prose",
        .kind = DataKind::windows,
        .stand_in = "synthetic-prose",
        .about = "2,500 English sentences made from a seed, as one text",
        .format = DataFormat::texts}}};
}

// Whether `directory` ends with a folder name of another data set: "FashionMNIST/raw" is not MNIST.
bool belongs_to_another(const Dataset& dataset, const std::filesystem::path& directory) {
  const auto ends_with = [&](const std::filesystem::path& folder) {
    const auto size = std::distance(folder.begin(), folder.end());
    const auto all = std::distance(directory.begin(), directory.end());
    return size <= all && std::equal(folder.begin(), folder.end(), std::next(directory.begin(), all - size));
  };
  for (const Dataset& other : datasets()) {
    if (other.name == dataset.name) continue;
    if (std::ranges::any_of(other.folders, ends_with)) return true;
  }
  return false;
}

// Whether `place` is a folder with a file of the data set, or its archive.
bool holds_any(const Dataset& dataset, const std::filesystem::path& place) {
  std::error_code ignored;
  if (dataset.format == DataFormat::imdb && is_archive_name(place))
    return std::filesystem::exists(place, ignored);
  if (dataset.format == DataFormat::image_folder) return holds_images(place);
  if (dataset.format == DataFormat::text_folder) return holds_text_classes(place);
  if (dataset.format == DataFormat::text_pairs) return holds_text_pairs(place);
  if (dataset.format == DataFormat::own_text) return holds_own_text(place);
  if (dataset.format == DataFormat::csv) return holds_table(place);
  const std::vector<std::string> names = accepted_names(dataset);
  return std::ranges::any_of(
      names, [&](const std::string& name) { return std::filesystem::exists(place / name, ignored); });
}

}  // namespace

std::span<const Dataset> datasets() {
  static const std::array<Dataset, 16> rows = all_datasets();
  return rows;
}

std::vector<std::string> dataset_names() {
  return names_of(datasets(), &Dataset::name);
}

const Dataset& find_dataset(std::string_view name) {
  return named_row(datasets(), &Dataset::name, "data set", name);
}

std::string_view kind_name(DataKind kind) {
  constexpr std::array names{"images", "texts", "text pairs", "windows of a text", "rows of a table"};
  return names.at(static_cast<std::size_t>(kind));
}

InputShape input_shape(const Dataset& dataset) {
  const bool words = dataset.kind == DataKind::texts || dataset.kind == DataKind::text_pairs;
  const bool windows = dataset.kind == DataKind::windows;
  constexpr std::int64_t usual_characters = 69;  // of English prose, with the special tokens
  const std::int64_t vocabulary = words ? DataChoice{}.vocabulary_max_size : windows ? usual_characters : 0;
  return {.image = dataset.shape,
          .classes = dataset.classes,
          .vocabulary = vocabulary,
          .target_vocabulary = dataset.kind == DataKind::text_pairs ? vocabulary : 0,
          .source_length = windows ? DataChoice{}.window_length : dataset.source_length,
          .target_length = dataset.target_length};
}

InputShape input_shape(const Dataset& dataset, const DataChoice& choice) {
  InputShape input = input_shape(dataset);
  if (dataset.kind == DataKind::windows) input.source_length = 0;  // only the data says the tokens
  if (dataset.format == DataFormat::image_folder)
    input.image = {0, 0, 0};
  else if (dataset.kind == DataKind::images && choice.image_size > 0)
    input.image.height = input.image.width = choice.image_size;
  return input;
}

std::optional<std::filesystem::path> find_folder(const Dataset& dataset,
                                                 const std::filesystem::path& directory) {
  for (const std::string& folder : dataset.folders) {
    if (holds_any(dataset, directory / folder)) return directory / folder;
  }
  const auto plain = std::filesystem::absolute(directory / "").lexically_normal().parent_path();
  if (holds_any(dataset, plain) && !belongs_to_another(dataset, plain)) return directory;
  return std::nullopt;
}

}  // namespace trainyard::models
