// Reader of the new lines of one append-only file. A line counts once its newline is written.
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

namespace trainyard::orchestrator {

class RecordLogTail {
 public:
  explicit RecordLogTail(std::filesystem::path file, bool shared = false);  // need not exist yet

  std::vector<std::string> new_lines();  // without their newlines

 private:
  void read_rest();
  void take_before_hole(const std::string& bytes);

  std::filesystem::path file_;
  bool shared_;
  FileDescriptor fd_;
  std::int64_t offset_ = 0;  // of the consumed bytes, if `shared_`
  std::chrono::steady_clock::time_point hole_since_;
  std::string partial_;  // beginning of a line that is not complete yet
};

}  // namespace trainyard::orchestrator
