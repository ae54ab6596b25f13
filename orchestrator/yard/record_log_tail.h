// Reader of the new lines of one append-only file. A line counts once its newline is written.
//
// - A call reads a limited number of bytes, so that a large file does not hold up its reader.
// - A line longer than `experiments::longest_record` ends the reading.
//
// On a network file system (`shared`):
// - The file is opened again for each read, because only then the client updates its size.
// - Bytes of another host that have not arrived read as zeros. The reader waits for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "experiments/protocol/record_lines.h"

namespace trainyard::orchestrator {

class RecordLogTail {
 public:
  explicit RecordLogTail(std::filesystem::path file, bool shared = false);  // need not exist yet

  static constexpr std::size_t usual_bytes = std::size_t{1} << 18;
  std::vector<std::string> new_lines(std::size_t most_bytes = usual_bytes);  // without their newlines

  bool at_end() const { return at_end_; }                // the last call read all there was
  bool too_long() const { return lines_.too_long(); }    // the next line is, and nothing more is read
  std::int64_t lines() const { return lines_.count(); }  // that were returned
  std::int64_t bytes() const { return offset_; }         // that were read

  // Makes all lines so far durable. std::system_error if the disk fails.
  void sync() const;

 private:
  void read_some(std::size_t most_bytes);
  std::size_t bytes_before_hole(const std::string& bytes);

  std::filesystem::path file_;
  bool shared_;
  FileDescriptor fd_;
  std::int64_t offset_ = 0;  // of the first byte that was not read
  std::chrono::steady_clock::time_point hole_since_;
  experiments::RecordLines lines_;
  bool at_end_ = false;
};

}  // namespace trainyard::orchestrator
