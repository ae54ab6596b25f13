// Lines of a record log, taken from its bytes as they are read. Used by the orchestrator while ranks run, and
// by `db` on replay.
// - A line counts once its newline is there.
// - A line that is too long ends the reading, so that no program can fill the memory of its reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::experiments {

// Limits of the record log of a rank. An attempt that exceeds one of them fails.
inline constexpr std::size_t longest_record = std::size_t{1} << 20;        // bytes of a line
inline constexpr std::int64_t largest_record_log = std::int64_t{1} << 30;  // bytes of the file
inline constexpr int most_left_out_lines = 1000;                           // lines that are not records

class RecordLines {
 public:
  explicit RecordLines(std::size_t longest = longest_record) : longest_(longest) {}

  void add(std::string_view bytes);
  std::optional<std::string> next();             // the next whole line without its newline
  std::int64_t count() const { return count_; }  // lines that `next` has returned
  bool too_long() const { return too_long_; }    // the line after these is
  // What follows the last whole line, after `next` has returned nothing.
  std::string_view rest() const { return bytes_; }

 private:
  std::size_t longest_;
  std::string bytes_;
  std::size_t start_ = 0;     // of the next line in `bytes_`
  std::size_t searched_ = 0;  // there is no newline from `start_` to here
  std::int64_t count_ = 0;
  bool too_long_ = false;
};

}  // namespace trainyard::experiments
