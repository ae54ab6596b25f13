// Files of a data set: one file read from front to back, a text file read whole, and the entries of a tar
// archive.
//
// One file of a data set, plain or gzip, read once from front to back. All that is read can be hashed on the
// way, so that reading and fingerprinting check and see the same bytes. Errors name file and byte; bytes
// count in the unpacked content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/sha256.h"

namespace trainyard::models {

class DataFile {
 public:
  // `hash` may be null; it must outlive the reading. `advice` is what to do about a damaged file. UserError
  // where it cannot be opened.
  explicit DataFile(const std::filesystem::path& path, Sha256* hash = nullptr,
                    std::string advice = "get the file again from its source");
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  // Fills `bytes`, or as much as there is before the end; how many were read. UserError where the gzip stream
  // is cut off or corrupt.
  std::size_t read(std::span<std::uint8_t> bytes);

  // Exactly `count` bytes in pieces of at most 1 MiB, so that a false size in a header costs no memory.
  // UserError «the file ends here» where there are fewer; `whole` says what they belong to.
  using Piece = std::function<void(std::span<const std::uint8_t>)>;
  void read_exactly(std::uint64_t count, const std::string& whole, const Piece& use);

  void expect_end(const std::string& whole);  // UserError where any byte is left
  std::uint64_t offset() const { return offset_; }
  [[noreturn]] void fail(std::uint64_t byte, const std::string& what) const;  // UserError with the advice

 private:
  struct Stream;
  std::filesystem::path path_;
  Sha256* hash_;
  std::string advice_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t offset_ = 0;
};

// A text file whole, plain or gzip, checked to be UTF-8.

// UserError names file and byte where it cannot be read or is not UTF-8.
std::string read_text_file(const std::filesystem::path& path);

// A tar archive, plain or gzip, read once from front to back without unpacking it to disk (libarchive).

class Archive {
 public:
  // UserError where the file cannot be opened.
  explicit Archive(const std::filesystem::path& path);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // The name of the next regular file; nothing after the last. UserError names file and byte where the
  // archive is cut off or damaged, also behind its last file.
  std::optional<std::string> next();
  std::string content();  // of that file; at most once each

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::models
