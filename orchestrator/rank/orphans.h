// Processes that outlive what started them: a rank's grandchild in a session of its own, or what a killed
// orchestrator left behind. A process is known by what only ours can have, never by its name or its pid
// alone: the token of its attempt in its environment (children inherit it), or pid, start time and boot
// together, which no second process ever shares. So nobody else's process is ever ended.
// docs/process-supervision.md: how a supervisor shall catch those that have neither.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace trainyard::orchestrator {

// While it lives, orphaned descendants of this process become its children instead of init's.
class Subreaper {
 public:
  Subreaper();
  ~Subreaper();
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int before_ = 0;
};

inline constexpr const char* token_variable = "TRAINYARD_TOKEN";

struct ProcessMark {
  int pid = 0;
  std::uint64_t start_ticks = 0;  // since boot
};

// What is known of an attempt's processes.
struct LaunchedProcesses {
  std::string token;    // in their environment; empty: none was recorded
  std::string boot_id;  // of the host, when they were launched
  std::vector<ProcessMark> marks;
};

std::string new_token();                      // 32 hexadecimal digits of the kernel's randomness
std::string boot_id();                        // /proc/sys/kernel/random/boot_id
std::optional<ProcessMark> mark_of(int pid);  // nothing where it is gone

// Kills and reaps all children of this process, adopted ones too, that have this token. Returns how many
// there were.
int end_children_with(const std::string& token);

// Kills all processes of this host that are known to be of `launched`; waits until they are gone, two seconds
// at most. Returns how many there were.
int end_leftovers(const LaunchedProcesses& launched);

}  // namespace trainyard::orchestrator
