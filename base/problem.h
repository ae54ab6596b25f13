// What is wrong with a file that the user wrote: where, what, and whether it is only a warning.
#pragma once

#include <string>

#include "base/error.h"

namespace trainyard {

struct Problem {
  Location location;
  std::string message;  // what is wrong and what is allowed
  bool warning = false;
};
std::string to_text(const Problem& problem);  // "file:line:column: error: message"

}  // namespace trainyard
