// Holder of a lock: what the lock file says about it, and whether that process lives.
//
// The text can be stale, because a killed process cannot remove it. So a process is named only if it lives and
// was started at the recorded time.
// Lines of the file: the process number, `about`, and "started" with the start time of the process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace trainyard::orchestrator {

struct LockHolder {
  int pid = 0;
  std::vector<std::string> about;
};

// Write this process and `about` to a locked file. False, with errno, if that fails.
bool write_holder(int fd, const std::vector<std::string>& about);

// The process that the file names. Empty if it names none, or if that process has ended.
std::optional<LockHolder> live_holder(int fd);

// "an unknown process (find it with `fuser FILE`)": the holder if nothing names it.
std::string unknown_holder(const std::filesystem::path& file);

// Whether the file is empty, or has the text of a lock. Other files must not be overwritten.
// `about_lines`: the number of lines between the process number and "started".
bool is_lock_text(int fd, std::size_t about_lines);

// "ana", or "user 1000" if the user has no name.
std::string user_name(uid_t user);

}  // namespace trainyard::orchestrator
