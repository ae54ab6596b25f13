// The binary format of CIFAR-10 (www.cs.toronto.edu/~kriz/cifar.html): records of one label byte and 3072
// pixel bytes, red, green and blue plane after another, each by row. Files may be shorter than the original.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "models/samples/samples.h"

namespace trainyard::models {

std::vector<std::string> cifar10_train_names();  // "data_batch_1.bin" … "data_batch_5.bin"
std::string cifar10_test_name();                 // "test_batch.bin"

// Reads and checks a file; appends it to `images` and its bytes to `hash`; either may be null. Returns the
// count of samples. UserError names file and byte: no record, a record that is cut off, a label above 9.
std::int64_t read_cifar10_file(const std::filesystem::path& path, Images* images, Sha256* hash);

}  // namespace trainyard::models
