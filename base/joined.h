// Names one behind the other, as errors list them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace trainyard::models {

// "a, b, c": of each row what `text_of`, a member or a function, says; the row itself where none is given.
template <typename Rows, typename Text = std::identity>
std::string joined(const Rows& rows, const Text& text_of = {}, std::string_view between = ", ") {
  std::string text;
  bool first = true;
  for (const auto& row : rows) {
    if (!first) text += between;
    first = false;
    text += std::invoke(text_of, row);
  }
  return text;
}

}  // namespace trainyard::models
