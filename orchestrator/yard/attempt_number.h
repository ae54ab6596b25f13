// Attempts of a run are counted by their folders, from 1; a number is never used again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace trainyard::orchestrator {

// 3 of "attempt-3"; nothing of any other name.
std::optional<int> attempt_number(const std::string& folder_name);

// The largest number in a run's folder; 0 where there is none.
int last_attempt(const std::filesystem::path& run_folder);

}  // namespace trainyard::orchestrator
