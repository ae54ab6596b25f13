// The two exceptions of trainyard: `UserError` for what the user must mend (it names the place and gives
// advice), `InternalError` for what we must mend. Every layer throws them at its boundary; `tools/trainyard`
// turns the first into one line and exit code 2, or 1 where a run was under way.
#pragma once

#include <stdexcept>
#include <string>

namespace trainyard {

// A place in a file the user wrote; line and column count from 1, 0 = the file as a whole.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

// "file:line:column", without the parts that are 0; empty for no file.
std::string to_text(const Location& location);

class UserError : public std::runtime_error {
 public:
  // `message` says what is wrong, `advice` what to do about it (may be empty; with or without a leading ";
  // "). what() is "file:line:column: message; advice" without the parts that are empty.
  explicit UserError(const std::string& message, const std::string& advice = "",
                     const Location& location = {});
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// What is wrong with a file that the user wrote: where, what, and whether it is only a warning.

struct Problem {
  Location location;
  std::string message;  // what is wrong and what is allowed
  bool warning = false;
};
std::string to_text(const Problem& problem);  // "file:line:column: error: message"

}  // namespace trainyard
