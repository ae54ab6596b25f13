#include "orchestrator/resources/memory_kills.h"

#include <sstream>

#include "base/files.h"
#include "base/host.h"

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

fs::path oom_kills_file(const std::string& cgroup, const fs::path& mount) {
  for (const bool v1 : {true, false}) {
    const auto path = cgroup_path(cgroup, v1 ? "memory" : "");
    if (!path) continue;
    const fs::path root = v1 ? mount / "memory" : mount;
    const char* const file = v1 ? "memory.oom_control" : "memory.events";
    // a container often mounts its own cgroup as the root
    for (const fs::path& folder : {root / fs::path(*path).relative_path(), root})
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
