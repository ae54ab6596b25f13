// This host: its name and its programs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace trainyard {

// The name of this host, as records, the recorded environment and messages show it. No other function asks
// the system for it. One line of UTF-8 without control characters: Linux allows any bytes in a host name,
// but a record must be UTF-8.
std::string host_name();

bool is_executable(const std::filesystem::path& file);  // a regular file that this process may execute

// The program `name` for a process that starts in `folder`, as execvp finds it. Empty if it is not found.
// The programs of an experiment are looked up before any run starts. A missing program is then an error of
// the experiment file, and not a failed run.
// - A name without a slash is looked up in the folders of PATH (/bin and /usr/bin if PATH is not set).
// - A name with a slash is a path relative to `folder`.
std::optional<std::filesystem::path> program_path(const std::string& name,
                                                  const std::filesystem::path& folder);

}  // namespace trainyard
