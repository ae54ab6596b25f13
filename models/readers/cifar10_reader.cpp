#include "models/readers/cifar10_reader.h"

#include <span>

#include "models/readers/data_file.h"

namespace trainyard::models {

namespace {

constexpr std::size_t record_bytes = 1 + 3 * 32 * 32;
constexpr std::size_t records_at_once = 256;

}  // namespace

std::vector<std::string> cifar10_train_names() {
  return {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
}

std::string cifar10_test_name() {
  return "test_batch.bin";
}

std::int64_t read_cifar10_file(const std::filesystem::path& path, Images* images, Sha256* hash) {
  DataFile file(path, hash);
  std::vector<std::uint8_t> buffer(record_bytes * records_at_once);
  std::int64_t count = 0;
  std::size_t got = buffer.size();
  while (got == buffer.size()) {
    const std::uint64_t start = file.offset();
    got = file.read(buffer);
    if (got % record_bytes != 0) {
      file.fail(start + got, "the file ends here, within a record of 3073 bytes");
    }
    for (std::size_t at = 0; at < got; at += record_bytes, ++count) {
      const auto record = std::span(buffer).subspan(at, record_bytes);
      if (record[0] > 9) file.fail(start + at, "label " + std::to_string(record[0]) + ", should be 0 to 9");
      if (images == nullptr) continue;
      images->labels.push_back(record[0]);
      images->pixels.insert(images->pixels.end(), record.begin() + 1, record.end());
    }
  }
  if (count == 0) file.fail(0, "the file is empty");
  return count;
}

}  // namespace trainyard::models
