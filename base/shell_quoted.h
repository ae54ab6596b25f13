// A path or a value as one word of a shell's command, whatever is in it; plain words stay as they are.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::orchestrator {

inline std::string shell_quoted(const std::string& text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

}  // namespace trainyard::orchestrator
