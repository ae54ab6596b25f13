// Where a program is that a command names, as execvp finds it. Foreign arms are looked for before anything
// starts, so that a program that is not there is an error of the file and not of its runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace trainyard {

bool is_executable(const std::filesystem::path& file);  // a regular file that this process may execute

// For a process that is started in `folder`: a name without a slash is looked for in the folders of PATH
// (/bin and /usr/bin where it is not set), any other is a place from `folder`. Empty where it is not there.
std::optional<std::filesystem::path> program_path(const std::string& name,
                                                  const std::filesystem::path& folder);

}  // namespace trainyard
