// Readers of two image formats: IDX (MNIST, Fashion-MNIST) and the binary format of CIFAR-10.
//
// The IDX format of MNIST and Fashion-MNIST (yann.lecun.com/exdb/mnist): a file of images and one of labels a
// part, numbers big endian, plain or gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "models/samples/samples.h"

namespace trainyard::models {

// A part of the data set in a folder: prefix "train" or "t10k".
struct IdxPart {
  std::filesystem::path images;
  std::filesystem::path labels;
};

// The names under which the images or labels of a part may stand, the preferred first.
std::vector<std::string> idx_images_names(const std::string& prefix);
std::vector<std::string> idx_labels_names(const std::string& prefix);

// The part's files; nothing where neither is there. UserError where one is there without the other.
std::optional<IdxPart> find_idx_part(const std::filesystem::path& folder, const std::string& prefix);

// Reads and checks a whole part; appends it to `images`, whose shape it must have, and its bytes to `hash`;
// either may be null. Returns the count of samples. UserError names file and byte: wrong magic number or size
// of images, a file that ends early or goes on, a label >= `classes`, counts that differ.
std::int64_t read_idx_part(const IdxPart& part, const ImageShape& shape, std::int64_t classes, Images* images,
                           Sha256* hash);

// The binary format of CIFAR-10 (www.cs.toronto.edu/~kriz/cifar.html): records of one label byte and 3072
// pixel bytes, red, green and blue plane after another, each by row. Files may be shorter than the original.

std::vector<std::string> cifar10_train_names();  // "data_batch_1.bin" … "data_batch_5.bin"
std::string cifar10_test_name();                 // "test_batch.bin"

// Reads and checks a file; appends it to `images` and its bytes to `hash`; either may be null. Returns the
// count of samples. UserError names file and byte: no record, a record that is cut off, a label above 9.
std::int64_t read_cifar10_file(const std::filesystem::path& path, Images* images, Sha256* hash);

}  // namespace trainyard::models
