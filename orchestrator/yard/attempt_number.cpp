#include "orchestrator/yard/attempt_number.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace trainyard::orchestrator {

std::optional<int> attempt_number(const std::string& folder_name) {
  constexpr std::string_view before = "attempt-";
  int number = 0;
  if (!folder_name.starts_with(before)) return std::nullopt;
  const char* last = folder_name.data() + folder_name.size();
  const auto [end, error] = std::from_chars(folder_name.data() + before.size(), last, number);
  if (error != std::errc{} || end != last || number < 1) return std::nullopt;
  return number;
}

int last_attempt(const std::filesystem::path& run_folder) {
  int last = 0;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(run_folder, missing))
    last = std::max(last, attempt_number(entry.path().filename()).value_or(0));
  return last;
}

}  // namespace trainyard::orchestrator
