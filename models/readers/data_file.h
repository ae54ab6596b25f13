// Read the files of a data set: binary files, text files, tar archives. All may be compressed with gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/sha256.h"

struct gzFile_s;  // of zlib

namespace trainyard::models {

// Limits of what small files unpack to, in bytes. A damaged or hostile file could fill memory and time.
inline constexpr std::uint64_t most_unpacked = 1U
                                               << 30U;  // of a file in gzip; others are as large as they are
inline constexpr std::uint64_t most_text = 1U << 26U;   // of a text, and of a file in an archive

// A file that is read once, from front to back.
// - All bytes that are read can be hashed at the same time.
// - Errors: UserError with the file and the byte. Bytes are counted in the unpacked content.
class DataFile {
 public:
  // - `hash` may be null. It must outlive this object.
  // - `advice`: what to do about a damaged file.
  // UserError if the file cannot be opened.
  explicit DataFile(const std::filesystem::path& path, Sha256* hash = nullptr,
                    std::string advice = "download the file again");

  // Fill `bytes`, up to the end of the file. Returns how many bytes were read.
  // UserError if the gzip stream is truncated or damaged, or unpacks to more than `most_unpacked`.
  std::size_t read(std::span<std::uint8_t> bytes);

  // Read exactly `count` bytes, in pieces of at most 1 MiB: a wrong size in a header costs no memory.
  // UserError if there are fewer, or more than may be unpacked. `whole` names what the bytes belong to.
  using Piece = std::function<void(std::span<const std::uint8_t>)>;
  void read_exactly(std::uint64_t count, const std::string& whole, const Piece& use);

  void expect_end(const std::string& whole);  // UserError if any byte is left
  std::uint64_t offset() const { return offset_; }
  [[noreturn]] void fail(std::uint64_t byte, const std::string& what) const;  // UserError with `advice`

 private:
  void refuse_bomb(std::uint64_t bytes) const;
  std::filesystem::path path_;
  Sha256* hash_;
  std::string advice_;
  std::unique_ptr<gzFile_s, int (*)(gzFile_s*)> stream_;  // zlib also reads files that are not compressed
  std::uint64_t offset_ = 0;
};

// The content of a text file. UserError if it cannot be read, is longer than `most_text` or is not UTF-8.
std::string read_text_file(const std::filesystem::path& path,
                           const std::string& advice = "download the file again");

// A tar archive that is read once, from front to back, without unpacking it to disk.
class Archive {
 public:
  // UserError if the file cannot be opened.
  explicit Archive(const std::filesystem::path& path);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // The name of the next regular file. Empty after the last.
  // UserError if the archive is truncated or damaged, even after its last file.
  std::optional<std::string> next();
  // The content of the file that `next` returned. Call it at most once per file.
  // UserError if it is longer than `most_text`.
  std::string content();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::models
