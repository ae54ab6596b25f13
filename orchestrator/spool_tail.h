// Follows one append-only file of lines: what is new since the last read, whole lines only. A line without
// its newline is not there yet.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard::orchestrator {

class SpoolTail {
 public:
  explicit SpoolTail(std::filesystem::path file);  // need not exist yet
  ~SpoolTail();
  SpoolTail(SpoolTail&& other) noexcept;
  SpoolTail& operator=(SpoolTail&&) = delete;

  std::vector<std::string> new_lines();  // without their newlines

 private:
  std::filesystem::path file_;
  int fd_ = -1;
  std::string partial_;  // the beginning of a line whose end is not written yet
};

}  // namespace trainyard::orchestrator
