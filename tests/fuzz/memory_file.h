// A file in memory that a fuzz target gives to a reader of files.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

namespace trainyard::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      std::abort();
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// A temporary folder, removed at the end of the process.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "trainyard-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path path;
};

// Replaces the content of the file.
inline void overwrite(const std::filesystem::path& file, std::span<const std::uint8_t> bytes) {
  std::FILE* out = std::fopen(file.c_str(), "wb");
  if (out == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), out) != bytes.size() ||
      std::fclose(out) != 0)
    std::abort();
}

// The bytes before and after the first "\n--\n", for readers of two files that belong together.
struct Halves {
  std::span<const std::uint8_t> first;
  std::span<const std::uint8_t> second;
};
inline Halves halves(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t at = text.find("\n--\n");
  if (at == std::string_view::npos) return {bytes, {}};
  return {bytes.first(at), bytes.subspan(at + 4)};
}

}  // namespace trainyard::fuzz
