// Follows one append-only file of lines: what is new since the last read, whole lines only. A line without
// its newline is not there yet.
//
// On a network file system (`shared`) the file is opened anew each time, which is when its client asks how
// long it has become; and a hole, which reads as zeros where bytes of another host have not arrived, is
// waited for.
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
  std::int64_t offset_ = 0;  // of what was taken, where shared
  std::chrono::steady_clock::time_point hole_since_;
  std::string partial_;  // the beginning of a line whose end is not written yet
};

}  // namespace trainyard::orchestrator
