#include "models/readers/decoded_images.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <numeric>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/plain_file.h"
#include "base/sha256.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 24> version{"trainyard images 1\n"};
constexpr std::time_t settled_seconds = 2;  // FAT has the coarsest times: two seconds

// A file: this, then per part the labels, then per part the pixels.
struct Header {
  std::array<char, 24> version{};
  std::array<char, 64> fingerprint{};
  std::int64_t classes = 0;
  std::array<std::int64_t, 3> shape{};   // channels, height, width
  std::array<std::int64_t, 3> counts{};  // images of train, validation and test
};

template <typename T>
std::string_view bytes_of(const T& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
}

// Whether a file with this header has `size` bytes.
bool is_whole(const Header& header, std::int64_t size) {
  std::int64_t pixels = 1;
  for (const std::int64_t length : header.shape) {
    if (length < 1 || length > size / pixels) return false;
    pixels *= length;
  }
  std::int64_t rest = size - static_cast<std::int64_t>(sizeof header);
  const std::int64_t each = pixels + static_cast<std::int64_t>(sizeof(std::int32_t));
  for (const std::int64_t count : header.counts) {
    if (count < 0 || count > rest / each) return false;
    rest -= count * each;
  }
  return header.version == version && rest == 0;
}

// The whole file, mapped. Null if it cannot be.
std::shared_ptr<const std::uint8_t> mapped_file(int fd, std::size_t size) {
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return nullptr;
  return {static_cast<const std::uint8_t*>(address),
          [address, size](const void*) { ::munmap(address, size); }};
}

}  // namespace

fs::path decoded_file(const fs::path& folder, const std::string& recipe, const std::vector<fs::path>& files) {
  Sha256 hash;
  hash.update(bytes_of(version));
  hash.update(recipe + '\n');
  const std::time_t settled = std::time(nullptr) - settled_seconds;
  for (const fs::path& file : files) {
    struct stat about {};
    if (::stat(file.c_str(), &about) != 0 || about.st_ctim.tv_sec >= settled) return {};
    hash.update(fmt::format("{}\n{} {} {}.{}\n", file.string(), about.st_size, about.st_ino,
                            about.st_ctim.tv_sec, about.st_ctim.tv_nsec));
  }
  return folder / (hash.hex() + ".images");
}

std::optional<ReadImages> mapped_images(const fs::path& file) {
  const OpenedFile opened = open_plain(file);
  struct stat about {};
  if (!opened.fd || ::fstat(opened.fd.get(), &about) != 0) return std::nullopt;
  const auto size = static_cast<std::size_t>(about.st_size);
  Header header;
  if (size < sizeof header) return std::nullopt;
  const std::shared_ptr<const std::uint8_t> content = mapped_file(opened.fd.get(), size);
  if (!content) return std::nullopt;
  std::memcpy(&header, content.get(), sizeof header);
  if (!is_whole(header, about.st_size)) return std::nullopt;
  ReadImages found{.parts = {},
                   .classes = header.classes,
                   .fingerprint = std::string(header.fingerprint.begin(), header.fingerprint.end())};
  const std::uint8_t* at = content.get() + sizeof header;
  for (std::size_t i = 0; i < header.counts.size(); ++i) {
    Images& part = *found.parts.all().at(i);
    part.shape = {.channels = header.shape[0], .height = header.shape[1], .width = header.shape[2]};
    part.labels.resize(static_cast<std::size_t>(header.counts.at(i)));
    part.places.resize(part.labels.size());
    std::iota(part.places.begin(), part.places.end(), 0);
    const std::size_t bytes = part.labels.size() * sizeof(std::int32_t);
    std::copy_n(at, bytes, reinterpret_cast<std::uint8_t*>(part.labels.data()));
    at += bytes;
  }
  for (Images* part : found.parts.all()) {
    part->mapped = {content, at};
    at += part->size() * part->shape.pixels();
  }
  return found;
}

void write_decoded(const fs::path& file, const ReadImages& images) try {
  const auto parts = images.parts.all();
  const ImageShape& shape = images.parts.train.shape;
  Header header{.version = version,
                .fingerprint = {},
                .classes = images.classes,
                .shape = {shape.channels, shape.height, shape.width},
                .counts = {parts[0]->size(), parts[1]->size(), parts[2]->size()}};
  images.fingerprint.copy(header.fingerprint.data(), header.fingerprint.size());
  std::vector<std::string_view> content{{reinterpret_cast<const char*>(&header), sizeof header}};
  for (const Images* part : parts) content.push_back(bytes_of(part->labels));
  for (const Images* part : parts) content.push_back(bytes_of(part->pixels));
  for (const fs::path& folder : {file.parent_path().parent_path(), file.parent_path()}) {
    if (fs::create_directories(folder)) fs::permissions(folder, fs::perms::owner_all);
    if (!is_folder(folder)) return;
  }
  const fs::path own =
      fmt::format("{}.{}", file.string(), ::getpid());  // another command may write the same now
  write_durably(own, content);
  fs::rename(own, file);
} catch (const std::system_error&) {  // a full disk, or a folder of another user
} catch (const UserError&) {
}

}  // namespace trainyard::models
