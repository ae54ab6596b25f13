// A temporary folder of data files, and the bytes of small files in the real formats.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/datasets/datasets.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/user_error.h"

namespace trainyard::tests {

class DataFolder : public ScratchFolder {
 public:
  // Writes the file `name` and creates its folders. Compresses it if the name ends in ".gz".
  std::filesystem::path write(const std::string& name, const std::string& bytes) const;
};

std::string big_endian(std::uint32_t number);

std::string gzipped(const std::string& bytes);

// A tar archive (POSIX ustar) of regular files in this order.
struct TarEntry {
  std::string name;  // at most 99 bytes
  std::string bytes;
};
std::string tar(const std::vector<TarEntry>& entries);

// Samples with distinct content: sample i has label i mod 10, and its first two pixels are i, big-endian.
std::string idx_images(std::uint32_t count, std::uint32_t height = 28, std::uint32_t width = 28);
std::string idx_labels(std::uint32_t count);
std::string cifar10_records(int first, int count);

struct ImageSplits {
  models::Images train;
  models::Images validation;
  models::Images test;
};
ImageSplits read_images(const models::DataChoice& choice);

// The fingerprint of a data set with this `data_seed` and defaults otherwise.
std::string fingerprint(const models::Dataset& source, const std::filesystem::path& folder,
                        std::uint64_t data_seed);

// The number in the first two pixels of each sample.
std::vector<int> sample_numbers(const models::Images& images);

}  // namespace trainyard::tests
