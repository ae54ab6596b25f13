#include <doctest/doctest.h>

#include "models/readers/image_readers.h"
#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard::models;
using namespace trainyard::tests;

namespace {

std::string error_of(const std::string& bytes) {
  const DataFolder folder;
  const auto file = folder.write("test_batch.bin", bytes);
  return user_error_of([&] { read_cifar10_file(file, nullptr, nullptr); });
}

}  // namespace

TEST_CASE("a file with any number of records is read correctly") {
  for (const int count : {1, 255, 256, 257, 512}) {
    const DataFolder folder;
    const auto file = folder.write("test_batch.bin", cifar10_records(7, count));
    Images images{.shape = {3, 32, 32}, .pixels = {}, .labels = {}};
    CHECK(read_cifar10_file(file, &images, nullptr) == count);
    const std::vector<int> numbers = sample_numbers(images);
    REQUIRE(static_cast<int>(numbers.size()) == count);
    for (int i = 0; i < count; ++i) {
      REQUIRE(numbers[static_cast<std::size_t>(i)] == 7 + i);
      REQUIRE(images.labels[static_cast<std::size_t>(i)] == (7 + i) % 10);
    }
  }
}

TEST_CASE("a truncated record is an error that names file and byte") {
  const std::string bytes = cifar10_records(0, 3);
  for (const std::size_t cut : {1, 2, 3072, 3074, 6145, 6147, 9218}) {
    CAPTURE(cut);
    CHECK(contains(error_of(bytes.substr(0, cut)),
                   "test_batch.bin: byte " + std::to_string(cut) + ": the file ends here, within a record"));
  }
  CHECK(contains(error_of(bytes + "x"), "test_batch.bin: byte 9220: the file ends here"));
  CHECK(contains(error_of(""), "test_batch.bin: byte 0: the file is empty"));
}

TEST_CASE("a label above 9 is an error that names its byte, even beyond the first buffer") {
  std::string bytes = cifar10_records(0, 300);
  bytes[3073 * 290] = 10;
  CHECK(contains(error_of(bytes), "byte 891170: the label is 10, but should be 0 to 9"));
}
