// Orphans: processes that outlive their parent, such as a rank's grandchild in its own session, or the ranks
// of a killed orchestrator.
//
// `end_leftovers` ends a process of an earlier attempt only if three things match:
// - the token of the attempt in its environment, which children inherit,
// - its user, which must be that of this process,
// - its start time, which must be after the launch.
// A name or a pid never counts. `supervised_ranks.h` ends processes that have lost their token, because it is their
// ancestor.
#pragma once

#include <cstdint>
#include <set>
#include <string>

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

// What identifies the processes of an attempt.
struct LaunchedProcesses {
  std::string token;              // in their environment
  std::string boot_id;            // of the host, when they were launched
  std::uint64_t since_ticks = 0;  // before the launch
};

std::string new_token();    // 32 random hexadecimal digits
std::string boot_id();      // /proc/sys/kernel/random/boot_id
std::uint64_t ticks_now();  // since boot, as in `ProcessFacts`

// Kill and reap children of this process, adopted ones too, until none is left. Return how many of them ran.
// - Children of a killed process are adopted, so all descendants are found. The process group of each is killed with it.
// - A killed process that does not leave the kernel is waited for, at most two seconds after the last change.
// - Left alone: children of other users, which cannot be killed.
int end_children(const std::set<int>& except = {},
                 std::uint64_t since_ticks = 0);  // not those that started earlier
int end_children_with(const std::string& token);

// Kills all processes of this host that match `launched`. Waits until they are gone, at most two seconds. Returns their
// number.
int end_leftovers(const LaunchedProcesses& launched);

}  // namespace trainyard::orchestrator
