// The text of a user error. For checks of messages.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace trainyard::tests {

// The text of the UserError that `action` throws. Empty if it throws none.
template <class Action>
std::string user_error_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace trainyard::tests
