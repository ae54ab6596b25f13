#include "models/readers/image_readers.h"

#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "models/readers/data_file.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t images_magic = 0x00000803;  // unsigned bytes, three dimensions
constexpr std::uint32_t labels_magic = 0x00000801;  // unsigned bytes, one dimension

std::vector<std::string> spellings(const std::string& stem, const std::string& ending) {
  const std::string dashed = stem + "-" + ending, dotted = stem + "." + ending;
  return {dashed, dashed + ".gz", dotted, dotted + ".gz"};
}

std::optional<fs::path> first_existing(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (fs::exists(folder / name)) return folder / name;
  }
  return std::nullopt;
}

[[noreturn]] void fail_missing(const fs::path& folder, const std::vector<std::string>& names,
                               const fs::path& other) {
  throw UserError(
      fmt::format("{}: {} is missing, but {} is there", folder.string(), names[0], other.filename().string()),
      "add one of " + joined(names));
}

std::uint32_t read_number(DataFile& file) {
  std::uint32_t number = 0;
  file.read_exactly(4, "its header", [&](std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) number = number << 8U | byte;
  });
  return number;
}

// Check the magic number and return the count after it.
std::uint32_t read_count(DataFile& file, std::uint32_t magic, const std::string& what) {
  const std::uint32_t found = read_number(file);
  if (found != magic)
    file.fail(0,
              fmt::format("the magic number is {:#010x}, but a file of {} has {:#010x}", found, what, magic));
  const std::uint32_t count = read_number(file);
  if (count == 0) file.fail(4, fmt::format("the file has 0 {}", what));
  return count;
}

std::uint32_t read_images(DataFile& file, const ImageShape& shape, Images* into) {
  const std::uint32_t count = read_count(file, images_magic, "images");
  const std::uint32_t height = read_number(file);
  const std::uint32_t width = read_number(file);
  if (height != shape.height || width != shape.width) {
    file.fail(8,
              fmt::format("images are {}x{}, but should be {}x{}", height, width, shape.height, shape.width));
  }
  const std::string whole = fmt::format("{} images", count);
  file.read_exactly(static_cast<std::uint64_t>(count) * height * width, whole,
                    [&](std::span<const std::uint8_t> bytes) {
                      if (into != nullptr)
                        into->pixels.insert(into->pixels.end(), bytes.begin(), bytes.end());
                    });
  file.expect_end(whole);
  return count;
}

void read_labels(DataFile& file, const IdxPart& part, std::uint32_t images, std::int64_t classes,
                 Images* into) {
  const std::uint32_t count = read_count(file, labels_magic, "labels");
  if (count != images) {
    file.fail(
        4, fmt::format("the file has {} labels, but {} has {} images", count, part.images.string(), images));
  }
  const std::string whole = fmt::format("{} labels", count);
  file.read_exactly(count, whole, [&](std::span<const std::uint8_t> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] < classes) continue;
      file.fail(file.offset() - bytes.size() + i,
                fmt::format("the label is {}, but should be 0 to {}", bytes[i], classes - 1));
    }
    if (into != nullptr) into->labels.insert(into->labels.end(), bytes.begin(), bytes.end());
  });
  file.expect_end(whole);
}

constexpr std::size_t record_bytes = 1 + 3 * 32 * 32;
constexpr std::size_t records_at_once = 256;

}  // namespace

std::vector<std::string> idx_images_names(const std::string& prefix) {
  return spellings(prefix + "-images", "idx3-ubyte");
}

std::vector<std::string> idx_labels_names(const std::string& prefix) {
  return spellings(prefix + "-labels", "idx1-ubyte");
}

std::optional<IdxPart> find_idx_part(const fs::path& folder, const std::string& prefix) {
  const auto images = first_existing(folder, idx_images_names(prefix));
  const auto labels = first_existing(folder, idx_labels_names(prefix));
  if (!images && !labels) return std::nullopt;
  if (!images) fail_missing(folder, idx_images_names(prefix), *labels);
  if (!labels) fail_missing(folder, idx_labels_names(prefix), *images);
  return IdxPart{*images, *labels};
}

std::int64_t read_idx_part(const IdxPart& part, const ImageShape& shape, std::int64_t classes, Images* images,
                           Sha256* hash) {
  DataFile images_file(part.images, hash);
  const std::uint32_t count = read_images(images_file, shape, images);
  DataFile labels_file(part.labels, hash);
  read_labels(labels_file, part, count, classes, images);
  return count;
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
      if (record[0] > 9)
        file.fail(start + at, fmt::format("the label is {}, but should be 0 to 9", record[0]));
      if (images == nullptr) continue;
      images->labels.push_back(record[0]);
      images->pixels.insert(images->pixels.end(), record.begin() + 1, record.end());
    }
  }
  if (count == 0) file.fail(0, "the file is empty");
  return count;
}

}  // namespace trainyard::models
