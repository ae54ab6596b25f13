// Orphans: processes that outlive their parent, such as a rank's grandchild in its own session, or the ranks
// of a killed orchestrator.
//
// A process is ours by the token of its attempt in its environment, which children inherit, or by pid, start
// time and boot ID together. A name or a pid alone never counts, so no other process is ever ended.
// docs/process-supervision.md: how a supervisor can catch processes that have neither.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace trainyard::orchestrator {

// Makes orphaned descendants children of this process instead of init, while the object lives.
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

// Known marks of an attempt's processes.
struct LaunchedProcesses {
  std::string token;    // in their environment; empty: none was recorded
  std::string boot_id;  // of the host, when they were launched
  std::vector<ProcessMark> marks;
};

std::string new_token();                      // 32 random hexadecimal digits from the kernel
std::string boot_id();                        // /proc/sys/kernel/random/boot_id
std::optional<ProcessMark> mark_of(int pid);  // empty if the process is gone

// Kills and reaps all children of this process with this token, adopted ones too. Returns their number.
int end_children_with(const std::string& token);

// Kills all processes of this host that match `launched`. Waits until they are gone, at most two seconds.
// Returns their number.
int end_leftovers(const LaunchedProcesses& launched);

}  // namespace trainyard::orchestrator
