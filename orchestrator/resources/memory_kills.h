// How often the kernel killed a process of this cgroup because its memory ran out.
// Exit status and log of a killed rank say only "signal 9". With this count the reason can be named.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace trainyard::orchestrator {

// The number after "oom_kill" in memory.events (cgroup v2) or memory.oom_control (v1). Empty if there is none.
std::optional<std::int64_t> parse_oom_kills(const std::string& text);

// The file with the count of this process's own cgroup, `cgroup` being the text of /proc/self/cgroup. Empty if
// there is none below `mount`.
std::filesystem::path oom_kills_file(const std::string& cgroup, const std::filesystem::path& mount);

// Watches the count while the object lives.
class MemoryKills {
 public:
  MemoryKills();
  explicit MemoryKills(std::filesystem::path file);  // a file that has the count
  bool happened() const;                             // since the object was made

 private:
  std::filesystem::path file_;
  std::optional<std::int64_t> before_;
};

}  // namespace trainyard::orchestrator
