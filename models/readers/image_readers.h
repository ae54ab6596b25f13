// Readers of two image formats: IDX (MNIST, Fashion-MNIST) and the binary format of CIFAR-10.
//
// IDX (yann.lecun.com/exdb/mnist): per part one file of images and one of labels, plain or gzip. Numbers are
// big endian.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "models/samples/samples.h"

namespace trainyard::models {

// The two files of a part.
struct IdxPart {
  std::filesystem::path images;
  std::filesystem::path labels;
};

// The possible file names of the images or labels of a part, the preferred name first. `prefix` is "train" or
// "t10k".
std::vector<std::string> idx_images_names(const std::string& prefix);
std::vector<std::string> idx_labels_names(const std::string& prefix);

// The files of a part. Empty if neither file exists. UserError if only one exists.
std::optional<IdxPart> find_idx_part(const std::filesystem::path& folder, const std::string& prefix);

// Read and check a part. Returns the number of samples.
// - The samples are appended to `images`, and the bytes are added to `hash`. Either may be null.
// - UserError with file and byte: wrong magic number, wrong size of images, truncated or too long file, label
//   >= `classes`, different numbers of images and labels.
std::int64_t read_idx_part(const IdxPart& part, const ImageShape& shape, std::int64_t classes, Images* images,
                           Sha256* hash);

// The binary format of CIFAR-10 (www.cs.toronto.edu/~kriz/cifar.html). A record has one label byte and 3072
// pixel bytes: the red, the green and the blue plane, row by row. Files may have fewer records than the
// published ones.
//
// Read and check a file. Returns the number of samples.
// - The samples are appended to `images`, and the bytes are added to `hash`. Either may be null.
// - UserError with file and byte: empty file, truncated record, label above 9.
std::int64_t read_cifar10_file(const std::filesystem::path& path, Images* images, Sha256* hash);

}  // namespace trainyard::models
