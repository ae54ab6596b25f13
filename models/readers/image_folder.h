// Read the user's own images (data set "folder"): picture files, or NumPy arrays.
//
// Pictures:
// - PNG or JPEG files in class folders (`class_folders.h`). A missing part is split off `train`.
// - Every picture becomes RGB with image_size × image_size pixels (`image_decoder.h`).
//
// Arrays:
// - `train-images.npy` and `train-labels.npy`, optionally `validation-…` and `test-…`, all uint8.
// - Images are [N, H, W], [N, H, W, C] or [N, C, H, W] with C = 1 or 3. If both fit, C is last.
// - Labels are [N] and begin with 0.
// - Images keep their size. image_size is ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "models/readers/decoded_images.h"
#include "models/samples/splits.h"

namespace trainyard::models {

// Read all images, from where decoded ones are kept if they are there.
// UserError if there are no images, if a file is damaged, or if a class is not in `train`.
ReadImages read_image_folder(const std::filesystem::path& folder, std::int64_t image_size,
                             const Decoding& decoding = {});

// Empty for arrays.
std::vector<std::string> image_class_names(const std::filesystem::path& folder);

bool holds_images(const std::filesystem::path& folder);  // checks file names only

// A uint8 array as NumPy's `save` writes it (numpy.lib.format, versions 1 to 3).
struct ByteArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;  // in C order
};

// UserError if the file is not an .npy, is truncated or too long, or if the array is empty, not uint8, or in
// Fortran order. The message names the file, and the byte if the file is damaged.
ByteArray read_npy(const std::filesystem::path& path, Sha256* hash);

}  // namespace trainyard::models
