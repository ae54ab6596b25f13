#include "orchestrator/resources/memory_kills.h"

#include <sstream>

#include "base/files.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

std::optional<std::int64_t> parse_oom_kills(const std::string& text) {
  std::istringstream lines(text);
  std::string name;
  std::int64_t count = 0;
  while (lines >> name >> count)
    if (name == "oom_kill") return count;
  return std::nullopt;
}

// Lines of /proc/self/cgroup: "4:memory:/a/b" in version 1, "0::/a/b" in version 2.
fs::path oom_kills_file(const std::string& cgroup, const fs::path& mount) {
  std::istringstream lines(cgroup);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path own = fs::path(line.substr(second + 1)).relative_path();
    const bool v1 = controllers.find(",memory,") != std::string::npos;
    if (!v1 && controllers != ",,") continue;
    const fs::path root = v1 ? mount / "memory" : mount;
    const char* const file = v1 ? "memory.oom_control" : "memory.events";
    for (const fs::path& folder : {root / own, root})  // a container often mounts its own cgroup as the root
      if (parse_oom_kills(whole_file(folder / file))) return folder / file;
  }
  return {};
}

MemoryKills::MemoryKills() : MemoryKills(oom_kills_file(whole_file("/proc/self/cgroup"), "/sys/fs/cgroup")) {}

MemoryKills::MemoryKills(fs::path file)
    : file_(std::move(file)), before_(parse_oom_kills(whole_file(file_))) {}

bool MemoryKills::happened() const {
  return before_ && parse_oom_kills(whole_file(file_)).value_or(0) > *before_;
}

}  // namespace trainyard::orchestrator
