#include <doctest/doctest.h>

#include "models/readers/image_readers.h"
#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard::models;
using namespace trainyard::tests;

namespace {

constexpr ImageShape idx_shape{.channels = 1, .height = 28, .width = 28};
constexpr std::uint32_t written_samples = 3;
const std::string images_name = "t10k-images-idx3-ubyte";
const std::string labels_name = "t10k-labels-idx1-ubyte";

// The error of reading a part whose two files have these bytes.
std::string error_of(const std::string& images, const std::string& labels, const std::string& ending = "") {
  const DataFolder folder;
  folder.write(images_name + ending, images);
  folder.write(labels_name + ending, labels);
  return user_error_of(
      [&] { read_idx_part(*find_idx_part(folder.path(), "t10k"), idx_shape, 10, nullptr, nullptr); });
}

std::string with_byte(std::string bytes, std::size_t at, int value) {
  bytes.at(at) = static_cast<char>(value);
  return bytes;
}

}  // namespace

TEST_CASE("images and labels are read with every spelling of the file names, plain or gzip") {
  for (const std::string separator : {"-", "."}) {
    for (const std::string packed : {"", ".gz"}) {
      const DataFolder folder;
      folder.write("train-images" + separator + "idx3-ubyte" + packed, idx_images(300));
      folder.write("train-labels" + separator + "idx1-ubyte" + packed, idx_labels(300));
      Images images;
      CHECK(read_idx_part(*find_idx_part(folder.path(), "train"), idx_shape, 10, &images, nullptr) == 300);
      REQUIRE(images.pixels.size() == 300 * 784);
      REQUIRE(images.size() == 300);
      const std::vector<int> numbers = sample_numbers(images);
      for (int i = 0; i < 300; ++i) {
        REQUIRE(numbers[static_cast<std::size_t>(i)] == i);
        REQUIRE(images.labels[static_cast<std::size_t>(i)] == i % 10);
      }
      CHECK_FALSE(find_idx_part(folder.path(), "t10k"));
    }
  }
}

TEST_CASE("a truncated file is an error that names file and byte, wherever it ends") {
  const std::string images = idx_images(written_samples);
  const std::string labels = idx_labels(written_samples);
  for (std::size_t cut = 0; cut < images.size(); cut += cut < 40 ? 1 : 97) {
    CAPTURE(cut);
    const std::string error = error_of(images.substr(0, cut), labels);
    CHECK(contains(error, images_name + ": byte " + std::to_string(cut) + ": the file ends here"));
  }
  for (std::size_t cut = 0; cut < labels.size(); ++cut) {
    CAPTURE(cut);
    const std::string error = error_of(images, labels.substr(0, cut));
    if (cut == 0 || cut >= 4)
      CHECK(contains(error, labels_name + ": byte " + std::to_string(cut) + ": the file ends"));
    CHECK(contains(error, labels_name));
  }
  CHECK(contains(error_of(images.substr(0, 1000), labels),
                 "1368 bytes short of 3 images; download the file again"));
}

TEST_CASE("a truncated gzip stream is an error that names the file, wherever it ends") {
  const std::string packed = gzipped(idx_labels(50));
  for (std::size_t cut = 0; cut < packed.size(); ++cut) {
    CAPTURE(cut);
    // without the ending .gz: the reader recognises gzip by the content
    CHECK(contains(error_of(idx_images(50), packed.substr(0, cut)), labels_name + ": byte "));
  }
}

TEST_CASE("a damaged gzip stream is an error, or it still has the same samples") {
  const std::string packed = gzipped(idx_labels(50));
  int errors = 0;
  for (std::size_t at = 0; at < packed.size(); ++at) {
    CAPTURE(at);
    const DataFolder folder;
    folder.write(images_name, idx_images(50));
    folder.write(labels_name, with_byte(packed, at, static_cast<unsigned char>(packed[at]) ^ 0x10));
    Images images;
    const std::string error = user_error_of(
        [&] { read_idx_part(*find_idx_part(folder.path(), "t10k"), idx_shape, 10, &images, nullptr); });
    if (error.empty()) {
      for (int i = 0; i < 50; ++i) REQUIRE(images.labels[static_cast<std::size_t>(i)] == i % 10);
    } else {
      ++errors;
      CHECK(contains(error, labels_name + ": byte "));
    }
  }
  CHECK(errors > 30);  // all bytes except name, time and system in the header
}

TEST_CASE("a wrong magic number is an error with both numbers") {
  CHECK(contains(
      error_of(idx_labels(written_samples), idx_labels(written_samples)),
      images_name + ": byte 0: the magic number is 0x00000801, but a file of images has 0x00000803"));
  CHECK(contains(
      error_of(idx_images(written_samples), idx_images(written_samples)),
      labels_name + ": byte 0: the magic number is 0x00000803, but a file of labels has 0x00000801"));
  CHECK(contains(error_of("<!DOCTYPE html>", idx_labels(written_samples)),
                 "byte 0: the magic number is 0x3c21444f"));
}

TEST_CASE("bytes after the end are an error that names the first of them") {
  CHECK(contains(error_of(idx_images(written_samples) + "x", idx_labels(written_samples)),
                 images_name + ": byte 2368: more bytes follow 3 images"));
  CHECK(contains(error_of(idx_images(written_samples), idx_labels(written_samples) + "x"),
                 labels_name + ": byte 11: more bytes follow 3 labels"));
}

TEST_CASE("a label out of range is an error that names its byte, even in a gzip file") {
  const std::string labels = with_byte(idx_labels(written_samples), 9, 10);
  CHECK(contains(error_of(idx_images(written_samples), labels),
                 labels_name + ": byte 9: the label is 10, but should be 0 to 9"));
  CHECK(contains(error_of(idx_images(written_samples), labels, ".gz"),
                 labels_name + ".gz: byte 9 (unpacked): the label is 10, but should be 0 to 9"));
}

TEST_CASE("different counts, no images, and images of another size are errors") {
  CHECK(contains(error_of(idx_images(3), idx_labels(4)),
                 labels_name + ": byte 4: the file has 4 labels, but "));
  CHECK(contains(error_of(idx_images(3), idx_labels(4)), images_name + " has 3 images"));
  CHECK(contains(error_of(idx_images(0), idx_labels(0)), images_name + ": byte 4: the file has 0 images"));
  CHECK(contains(error_of(idx_images(3, 32, 28), idx_labels(3)),
                 images_name + ": byte 8: images are 32x28, but should be 28x28"));
}

TEST_CASE("a header with billions of images costs no memory if the file is short") {
  const std::string images = idx_images(1);
  const std::string huge = images.substr(0, 4) + "\xff\xff\xff\xff" + images.substr(8);
  CHECK(contains(error_of(huge, idx_labels(1)), "byte 800: the file ends here"));
}

TEST_CASE("the error for images without labels, or labels without images, lists the possible names") {
  const DataFolder folder;
  const auto images = folder.write(images_name + ".gz", idx_images(written_samples));
  std::string error = user_error_of([&] { find_idx_part(folder.path(), "t10k"); });
  CHECK(contains(error, labels_name + " is missing, but " + images_name + ".gz is there; add one of "));
  CHECK(contains(error, "t10k-labels-idx1-ubyte, t10k-labels-idx1-ubyte.gz, t10k-labels.idx1-ubyte"));
  std::filesystem::remove(images);
  folder.write(labels_name, idx_labels(written_samples));
  error = user_error_of([&] { find_idx_part(folder.path(), "t10k"); });
  CHECK(contains(error, images_name + " is missing, but " + labels_name + " is there; add one of "));
}

TEST_CASE("a folder with the name of a file is an error, and not an empty data set") {
  const DataFolder folder;
  std::filesystem::create_directories(folder.path() / images_name);
  folder.write(labels_name, idx_labels(written_samples));
  const std::string error = user_error_of(
      [&] { read_idx_part(*find_idx_part(folder.path(), "t10k"), idx_shape, 10, nullptr, nullptr); });
  CHECK(contains(error, images_name + ": cannot be opened: it is a folder"));
}
