// Arrays as NumPy's `save` writes them (numpy.lib.format, versions 1 to 3), of bytes only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/sha256.h"

namespace trainyard::models {

struct ByteArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;  // in the order of C
};

// UserError names the file, and the byte where it is damaged: no .npy, cut off, going on after its end; not
// uint8, in Fortran's order, empty.
ByteArray read_npy(const std::filesystem::path& path, Sha256* hash);

}  // namespace trainyard::models
