// Find the program that a command names, as execvp does.
// The programs of an experiment are looked up before any run starts. A missing program is then an error of
// the experiment file, and not a failed run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace trainyard {

bool is_executable(const std::filesystem::path& file);  // a regular file that this process may execute

// The program `name` for a process that starts in `folder`. Empty if it is not found.
// - A name without a slash is looked up in the folders of PATH (/bin and /usr/bin if PATH is not set).
// - A name with a slash is a path relative to `folder`.
std::optional<std::filesystem::path> program_path(const std::string& name,
                                                  const std::filesystem::path& folder);

}  // namespace trainyard
