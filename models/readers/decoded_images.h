// Images of the user after they were decoded, in one file. So they are decoded once, and not by every command and every
// rank, and the ranks of a host share one copy in memory. Such a file can be removed at any time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/samples/samples.h"

namespace trainyard::models {

// Images of files, before they are split.
struct ReadImages {
  Parts<Images> parts;
  std::int64_t classes = 0;  // of images of the user
  // SHA-256 of the content of the files, and of the names of the user's: 64 hexadecimal digits.
  std::string fingerprint = {};
};

// The file in `folder` for the images of these files. Its name depends on `recipe`, and on names, sizes, inodes and times
// of change of the files. Empty if a file is missing, or has changed in the last two seconds: it could change again
// without a new time.
std::filesystem::path decoded_file(const std::filesystem::path& folder, const std::string& recipe,
                                   const std::vector<std::filesystem::path>& files);

// The images, mapped. Empty if there is no such file, or if it is not complete.
std::optional<ReadImages> mapped_images(const std::filesystem::path& file);

// Makes the folder and the one above it, for their owner only. Does nothing if one is a link, or if the file cannot
// be written: then images are decoded again.
void write_decoded(const std::filesystem::path& file, const ReadImages& images);

}  // namespace trainyard::models
