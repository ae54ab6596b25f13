#include "models/datasets/datasets.h"

#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard::models;
using namespace trainyard::tests;

namespace {

void write_idx(const DataFolder& folder, const std::string& prefix, std::uint32_t count,
               const std::string& ending) {
  folder.write(prefix + "-images-idx3-ubyte" + ending, idx_images(count));
  folder.write(prefix + "-labels-idx1-ubyte" + ending, idx_labels(count));
}

void write_cifar10(const DataFolder& folder, int each) {
  int first = 0;
  for (const std::string& name : find_dataset("cifar10").files) {
    folder.write(name, cifar10_records(first, each));
    first += each;
  }
}

DataChoice choice_of(const std::string& source, const std::filesystem::path& folder) {
  DataChoice choice;
  choice.dataset = choice.source = source;
  choice.folder = folder;
  return choice;
}

std::string fingerprint_of(const std::string& source, const DataFolder& folder) {
  return fingerprint(find_dataset(source), folder.path(), 0);
}

// The sorted sample numbers of all parts.
std::vector<int> all_numbers(const ImageSplits& splits) {
  std::vector<int> numbers;
  for (const Images* part : {&splits.train, &splits.validation, &splits.test}) {
    const std::vector<int> some = sample_numbers(*part);
    numbers.insert(numbers.end(), some.begin(), some.end());
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<int> first_numbers(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

bool labels_fit(const Images& images) {
  const std::vector<int> numbers = sample_numbers(images);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (images.labels[i] != numbers[i] % 10) return false;
  }
  return true;
}

}  // namespace

TEST_CASE(
    "every data set is described, and its substitute is generated data of the same kind, shape and classes") {
  for (const Dataset& dataset : datasets()) {
    CAPTURE(dataset.name);
    CHECK_FALSE(dataset.title.empty());
    CHECK_FALSE(dataset.about.empty());
    if (dataset.stand_in.empty()) continue;  // the user's own data has no substitute
    const Dataset& stand_in = find_dataset(dataset.stand_in);
    CHECK(stand_in.generated());
    CHECK(stand_in.kind == dataset.kind);
    CHECK(stand_in.shape == dataset.shape);
    CHECK(stand_in.classes == dataset.classes);
    CHECK(dataset.folders.empty() == dataset.generated());
    CHECK(dataset.files.empty() == dataset.generated());
  }
  CHECK(dataset_names() == std::vector<std::string>{"mnist", "fashion-mnist", "cifar10", "imdb", "multi30k",
                                                    "tiny-shakespeare", "folder", "text-folder", "text-pairs",
                                                    "text", "csv", "synthetic-digits",
                                                    "synthetic-color-digits", "synthetic-reviews",
                                                    "synthetic-phrases", "synthetic-prose"});
}

TEST_CASE("the error for a mistyped data set suggests the nearest name") {
  CHECK(user_error_of([] { find_dataset("mnits"); }) ==
        "there is no data set \"mnits\"; did you mean \"mnist\"?");
}

TEST_CASE("a data set is found in each of its folders, and in the data directory itself") {
  const Dataset& mnist = find_dataset("mnist");
  for (const std::string name : {"mnist/", "MNIST/raw/", "MNIST/", ""}) {
    CAPTURE(name);
    const DataFolder folder;
    CHECK_FALSE(find_folder(mnist, folder.path()));
    folder.write(name + "t10k-labels-idx1-ubyte.gz", idx_labels(1));
    const auto found = find_folder(mnist, folder.path());
    REQUIRE(found);
    CHECK(std::filesystem::equivalent(*found, folder.path() / name));
  }
  CHECK_FALSE(find_folder(mnist, "/no/such/directory"));
}

TEST_CASE("reviews are found as a folder or an archive, by their usual name or by their path") {
  const Dataset& imdb = find_dataset("imdb");
  const DataFolder folder;
  CHECK_FALSE(find_folder(imdb, folder.path()));
  const auto archive = folder.write("aclImdb_v1.tar.gz", "");
  CHECK(find_folder(imdb, folder.path()) == archive);
  CHECK(find_folder(imdb, archive) == archive);
  const auto other = folder.write("mine.tgz", "");
  CHECK(find_folder(imdb, other) == other);
  folder.write("aclImdb/train/pos/0_9.txt", "good");
  CHECK(find_folder(imdb, folder.path()) == folder.path() / "aclImdb");
  CHECK_FALSE(find_folder(find_dataset("mnist"), archive));
}

TEST_CASE("before data is read, a vocabulary of words has its largest size") {
  CHECK(input_shape(find_dataset("mnist")) == InputShape{.image = {1, 28, 28}, .classes = 10});
  const InputShape imdb = input_shape(find_dataset("imdb"));
  CHECK(imdb.vocabulary == 20000);
  CHECK(imdb.target_vocabulary == 0);
  CHECK(imdb.classes == 2);
  CHECK(imdb.source_length > 0);
  const InputShape pairs = input_shape(find_dataset("synthetic-phrases"));
  CHECK(pairs.target_vocabulary == 20000);
  CHECK(pairs.classes == 0);
  CHECK(pairs.target_length > 0);
  CHECK(input_shape(find_dataset("synthetic-prose")) ==
        InputShape{.image = {0, 0, 0}, .vocabulary = 69, .source_length = DataChoice{}.window_length});
}

TEST_CASE("MNIST is not mistaken for Fashion-MNIST, although its files have the same names") {
  const DataFolder folder;
  folder.write("MNIST/raw/t10k-labels-idx1-ubyte", idx_labels(1));
  const Dataset& fashion = find_dataset("fashion-mnist");
  for (const std::string name : {"", "MNIST/raw", "MNIST/raw/", "MNIST"}) {
    CHECK_FALSE(find_folder(fashion, folder.path() / name));
  }
  CHECK(find_folder(find_dataset("mnist"), folder.path() / "MNIST/raw"));
  folder.write("FashionMNIST/raw/t10k-labels-idx1-ubyte", idx_labels(1));
  CHECK(find_folder(fashion, folder.path() / "FashionMNIST/raw"));
}

TEST_CASE(
    "a fingerprint depends on every byte of the content, and not on compression, file names or folder") {
  const DataFolder plain;
  write_idx(plain, "t10k", 20, "");
  const std::string expected = fingerprint_of("mnist", plain);
  CHECK(expected.size() == 64);
  const DataFolder packed;
  write_idx(packed, "t10k", 20, ".gz");
  CHECK(fingerprint_of("mnist", packed) == expected);
  const DataFolder dotted;
  dotted.write("t10k-images.idx3-ubyte", idx_images(20));
  dotted.write("t10k-labels.idx1-ubyte.gz", idx_labels(20));
  CHECK(fingerprint_of("mnist", dotted) == expected);
  std::string other = idx_images(20);
  other.back() = 0;
  plain.write("t10k-images-idx3-ubyte", other);
  CHECK(fingerprint_of("mnist", plain) != expected);
  const DataFolder train;  // the same samples in another part
  write_idx(train, "train", 20, "");
  CHECK(fingerprint_of("mnist", train) != expected);
}

TEST_CASE("the fingerprint of generated data depends on name and seed") {
  const Dataset& digits = find_dataset("synthetic-digits");
  CHECK(fingerprint(digits, "", 1) == fingerprint(digits, "", 1));
  CHECK(fingerprint(digits, "", 1) != fingerprint(digits, "", 2));
  CHECK(fingerprint(digits, "", 1) != fingerprint(find_dataset("synthetic-color-digits"), "", 1));
}

TEST_CASE("a data set without parts is split: each sample is in exactly one part, with its label") {
  for (const std::string part : {"t10k", "train"}) {
    const DataFolder folder;
    write_idx(folder, part, 1000, ".gz");
    DataChoice choice = choice_of("mnist", folder.path());
    choice.split_seed = 3;
    const ImageSplits splits = read_images(choice);
    CHECK(splits.train.size() == 800);
    CHECK(splits.validation.size() == 100);
    CHECK(splits.test.size() == 100);
    CHECK(all_numbers(splits) == first_numbers(1000));
    for (const Images* images : {&splits.train, &splits.validation, &splits.test}) CHECK(labels_fit(*images));
    CHECK(sample_numbers(read_images(choice).train) == sample_numbers(splits.train));
    choice.split_seed = 4;
    CHECK(sample_numbers(read_images(choice).train) != sample_numbers(splits.train));
  }
}

TEST_CASE("the test part of a data set stays whole, and validation is split off the rest") {
  const DataFolder folder;
  write_idx(folder, "train", 900, "");
  write_idx(folder, "t10k", 100, "");
  ImageSplits splits = read_images(choice_of("fashion-mnist", folder.path()));
  CHECK(splits.train.size() == 800);
  CHECK(splits.validation.size() == 100);
  CHECK(sample_numbers(splits.test) == first_numbers(100));
  splits.test = {};
  CHECK(all_numbers(splits) == first_numbers(900));
}

TEST_CASE("CIFAR-10 is read from five batches and a test batch") {
  CHECK(find_dataset("cifar10").files == std::vector<std::string>{"data_batch_1.bin", "data_batch_2.bin",
                                                                  "data_batch_3.bin", "data_batch_4.bin",
                                                                  "data_batch_5.bin", "test_batch.bin"});
  const DataFolder folder;
  write_cifar10(folder, 18);
  const DataChoice choice = choice_of("cifar10", folder.path());
  const ImageSplits splits = read_images(choice);
  CHECK(splits.train.size() == 80);
  CHECK(splits.validation.size() == 10);
  CHECK(splits.test.size() == 18);
  CHECK(splits.train.shape == ImageShape{3, 32, 32});
  CHECK(all_numbers(splits) == first_numbers(108));
  std::filesystem::remove(folder.path() / "data_batch_3.bin");
  CHECK(contains(user_error_of([&] { read(choice); }), "data_batch_3.bin is missing"));
}

TEST_CASE("train_samples selects a subset of the training part and changes no other part") {
  const DataFolder folder;
  write_idx(folder, "t10k", 200, "");
  DataChoice choice = choice_of("mnist", folder.path());
  const ImageSplits all = read_images(choice);
  choice.train_samples = 50;
  const ImageSplits some = read_images(choice);
  const std::vector<int> numbers = sample_numbers(all.train);
  CHECK(sample_numbers(some.train) == std::vector<int>(numbers.begin(), numbers.begin() + 50));
  CHECK(sample_numbers(some.validation) == sample_numbers(all.validation));
  CHECK(sample_numbers(some.test) == sample_numbers(all.test));
  choice.train_samples = 160;
  CHECK(read_images(choice).train.size() == 160);
}

TEST_CASE("the error for a too large train_samples says how many samples there are") {
  const DataFolder folder;
  write_idx(folder, "t10k", 200, "");
  DataChoice choice = choice_of("mnist", folder.path());
  choice.train_samples = 161;
  CHECK(user_error_of([&] { read(choice); }) ==
        "train_samples is 161, but the training part of mnist has 160 samples; use at most 160");
  choice.train_samples = 0;
  CHECK(contains(user_error_of([&] { read(choice); }), "train_samples is 0"));
  choice = choice_of("synthetic-digits", "");
  choice.train_samples = 4001;
  CHECK(contains(user_error_of([&] { read(choice); }), "synthetic-digits has 4000 samples"));
}

TEST_CASE("generated data has three parts, is limited by train_samples, and depends on the seed") {
  DataChoice choice = choice_of("synthetic-digits", "");
  choice.train_samples = 30;
  const ImageSplits splits = read_images(choice);
  CHECK(splits.train.size() == 30);
  CHECK(splits.validation.size() == 1000);
  CHECK(splits.test.size() == 1000);
  choice.split_seed = 1;
  CHECK(read_images(choice).test.pixels != splits.test.pixels);
}

TEST_CASE("the error for missing data says where and for which files it looked") {
  const DataFolder folder;
  CHECK(contains(user_error_of([&] { fingerprint_of("mnist", folder); }),
                 "\"" + folder.path().string() + "\" has no file of mnist; its files are "));
  CHECK(contains(user_error_of([&] { read(choice_of("mnist", folder.path() / "none")); }),
                 "t10k-images-idx3-ubyte"));
  CHECK(contains(user_error_of([&] { read(choice_of("cifar10", folder.path())); }),
                 "data_batch_1.bin is missing"));
}

TEST_CASE("fingerprint finds a damaged file before any run is started") {
  const DataFolder folder;
  write_idx(folder, "t10k", 20, "");
  folder.write("t10k-images-idx3-ubyte", idx_images(20).substr(0, 5000));
  CHECK(contains(user_error_of([&] { fingerprint_of("mnist", folder); }),
                 "t10k-images-idx3-ubyte: byte 5000: the file ends here"));
}

TEST_CASE(
    "data that has changed since the run was planned is an error, and not another result with the same key") {
  const DataFolder folder;
  write_idx(folder, "t10k", 20, "");
  DataChoice choice = choice_of("mnist", folder.path());
  choice.fingerprint = fingerprint_of("mnist", folder);
  CHECK(read_images(choice).train.size() == 16);
  write_idx(folder, "t10k", 30, "");
  CHECK(contains(user_error_of([&] { read(choice); }), "has changed since the run was planned"));
}
