// The user's own images, as pictures in folders or as NumPy arrays.
//
// The user's own images (data set "folder"), in one of two layouts.
//
// Pictures: a folder a class, PNG or JPEG in it; labels are the classes in the order of their names. Hidden
// folders are none; another without pictures is an error, as a copy may have stopped before it. With
// folders `train`, and perhaps `validation` and `test`, the classes are in those; the parts that are not
// there are cut from `train`. Every picture becomes RGB, image_size × image_size (`image_decoder.h`).
//
// Arrays: `train-images.npy` and `train-labels.npy`, perhaps also `validation-…` and `test-…`, all uint8.
// Images [N, H, W], [N, H, W, C] or [N, C, H, W] with C 1 or 3 (where both fit, C is last); labels [N] from 0
// on. They are taken as they are; image_size has no meaning.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/sha256.h"
#include "models/samples/splits.h"

namespace trainyard::models {

struct FolderImages {
  Parts<Images> parts;
  std::int64_t classes = 0;
};

// Names and content of all files that are used go to `hash`. UserError names the file (and byte) that is
// wrong, a class that `train` does not have, or says that there are no images.
FolderImages read_image_folder(const std::filesystem::path& folder, std::int64_t image_size, Sha256& hash);

bool holds_images(const std::filesystem::path& folder);  // one of the layouts; looks at names only

// Arrays as NumPy's `save` writes them (numpy.lib.format, versions 1 to 3), of bytes only.

struct ByteArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;  // in the order of C
};

// UserError names the file, and the byte where it is damaged: no .npy, cut off, going on after its end; not
// uint8, in Fortran's order, empty.
ByteArray read_npy(const std::filesystem::path& path, Sha256* hash);

}  // namespace trainyard::models
