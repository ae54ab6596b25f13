// The published files of the data sets, if they are in TRAINYARD_DATA or in ../shared/data beside the
// sources.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <doctest/doctest.h>

#include "models/datasets/datasets.h"
#include "tests/support/data_folder.h"

using namespace trainyard::models;
using namespace trainyard::tests;

namespace {

std::optional<DataChoice> real_choice(const std::string& name) {
  const char* directory = std::getenv("TRAINYARD_DATA");
  const std::filesystem::path fallback = std::filesystem::path(TRAINYARD_SOURCE_DIR) / "../shared/data";
  const auto folder = find_folder(find_dataset(name), directory != nullptr ? directory : fallback);
  if (!folder) {
    MESSAGE("skipped: there is no " << name << " in TRAINYARD_DATA or ../shared/data");
    return std::nullopt;
  }
  DataChoice choice;
  choice.dataset = choice.source = name;
  choice.folder = *folder;
  choice.fingerprint = fingerprint(find_dataset(name), *folder, 0);
  return choice;
}

std::vector<int> histogram(const ImageSplits& splits) {
  std::vector<int> counts(10);
  for (const Images* part : {&splits.train, &splits.validation, &splits.test}) {
    for (const std::uint8_t label : part->labels) ++counts.at(label);
  }
  return counts;
}

}  // namespace

TEST_CASE("the test set of MNIST has the published labels") {
  const auto choice = real_choice("mnist");
  if (!choice) return;
  const ImageSplits splits = read_images(*choice);
  if (splits.train.size() + splits.validation.size() + splits.test.size() != 10'000) {
    MESSAGE("skipped: the folder has more than the test set of MNIST");
    return;
  }
  CHECK(splits.train.size() == 8000);
  CHECK(splits.validation.size() == 1000);
  CHECK(histogram(splits) == std::vector<int>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
  double sum = 0;
  for (const Images* part : {&splits.train, &splits.validation, &splits.test}) {
    sum = std::accumulate(part->pixels.begin(), part->pixels.end(), sum);
  }
  CHECK(sum / 7'840'000 / 255 ==
        doctest::Approx(0.1325).epsilon(0.001));  // the known mean of the test images
}

TEST_CASE("CIFAR-10 has the same number of images in each class") {
  const auto choice = real_choice("cifar10");
  if (!choice) return;
  const ImageSplits splits = read_images(*choice);
  const std::vector<int> counts = histogram(splits);
  CHECK(counts == std::vector<int>(10, counts[0]));
}

TEST_CASE("the IMDb reviews have the words and the vocabulary that Python counts") {
  auto choice = real_choice("imdb");
  if (!choice) return;
  if (choice->folder.filename() != "aclImdb_subset.tar.gz") {
    MESSAGE("skipped: the words were counted in aclImdb_subset.tar.gz, and not in "
            << choice->folder.string());
    return;
  }
  choice->split = {1, 0, 0};
  const Dataset& imdb = find_dataset("imdb");
  CHECK(facts(imdb, choice->folder, *choice).input.vocabulary == 19026);
  CHECK(facts(imdb, choice->folder, *choice).input.source_length == 236);
  const Splits splits = read(*choice);
  const auto& train = std::get<Texts>(splits.train);
  CHECK(train.size() == 4000);
  CHECK(sample_count(splits.test) == 2000);
  CHECK(std::count(train.labels.begin(), train.labels.end(), 1) == 2000);
  CHECK(train.tokens.tokens.size() == 943'562);
  CHECK(std::count(train.tokens.tokens.begin(), train.tokens.tokens.end(), 4) == 45'712);  // "the"
  choice->vocabulary_min_frequency = 5;
  CHECK(facts(imdb, choice->folder, *choice).input.vocabulary == 9749);
}

TEST_CASE("the sentences of Multi30k have the words and the vocabulary that Python counts") {
  auto choice = real_choice("multi30k");
  if (!choice) return;
  const DataFacts found = facts(find_dataset("multi30k"), choice->folder, *choice);
  CHECK(found.input.vocabulary == 7882);
  CHECK(found.input.target_vocabulary == 5898);
  CHECK(found.input.source_length == 14);  // 13.61 with <eos>
  CHECK(found.input.target_length == 15);  // 14.13 with <eos>
  const Splits splits = read(*choice);
  const auto& train = std::get<TextPairs>(splits.train);
  CHECK(train.size() == 29'000);
  CHECK(sample_count(splits.validation) == 1014);
  CHECK(sample_count(splits.test) == 1000);
  CHECK(train.source.tokens.size() == 365'763 + 29'000);
  CHECK(train.target.tokens.size() == 380'728 + 58'000);
  // "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."
  const std::vector<std::int32_t> first{18, 27, 216, 31, 85, 20, 89, 7, 15, 115, 7671, 3220, 4, 3};
  std::int64_t times = 0;
  for (std::int64_t i = 0; i < train.size(); ++i) times += std::ranges::equal(train.source[i], first) ? 1 : 0;
  CHECK(times == 1);
}

TEST_CASE("Tiny Shakespeare has the characters and the windows that Python counts") {
  const auto choice = real_choice("tiny-shakespeare");
  if (!choice) return;
  const DataFacts found = facts(find_dataset("tiny-shakespeare"), choice->folder, *choice);
  CHECK(found.input.vocabulary == 65 + 4);
  CHECK(found.input.source_length == 64);
  CHECK(found.sizes.train == 15'685);  // (1,115,394 * 90 / 100 - 1) / 64
  CHECK(found.sizes.validation == 871);
  CHECK(found.sizes.test == 871);
  // "First Citizen:\nBef"
  const std::vector<std::int32_t> begin{22, 51, 60, 61, 62, 5, 19, 51, 62, 51, 68, 47, 56, 14, 4, 18, 47, 48};
  const Splits splits = read(*choice);
  const auto& train = std::get<Windows>(splits.train);
  std::int64_t times = 0;
  for (std::int64_t i = 0; i < train.size(); ++i)
    times += std::ranges::equal(train.tokens[i].first(begin.size()), begin) ? 1 : 0;
  CHECK(times == 1);
}
