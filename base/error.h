// Exceptions: `UserError` for what the user must fix, `InternalError` for a bug in trainyard.
// - Each layer throws them at its boundary.
// - `trainyard` prints a `UserError` as one line and exits with code 2.
#pragma once

#include <stdexcept>
#include <string>

namespace trainyard {

// A place in a file that the user wrote. Line and column count from 1; 0 means the file as a whole.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

// "file:line:column", without the parts that are 0. Empty if there is no file.
std::string to_text(const Location& location);

class UserError : public std::runtime_error {
 public:
  // - `message`: what is wrong.
  // - `advice`: what to do about it. It may be empty, and it may begin with "; ".
  // what() is "file:line:column: message; advice", without the empty parts.
  explicit UserError(const std::string& message, const std::string& advice = "",
                     const Location& location = {});
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// The reason that a message gives for std::bad_alloc.
inline constexpr const char* no_memory_reason =
    "out of memory: this machine, its cgroup or a limit (`ulimit -v`) gives no more; free memory, or "
    "train fewer runs at once";

// An error or a warning about a file that the user wrote.
struct Problem {
  Location location;
  std::string message;  // what is wrong and what is allowed
  bool warning = false;
};
std::string to_text(const Problem& problem);  // "file:line:column: error: message"

}  // namespace trainyard
