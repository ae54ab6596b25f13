#include "orchestrator/resources/memory_kills.h"

#include <sstream>

#include "base/files.h"

namespace trainyard::orchestrator {

std::optional<std::int64_t> parse_memory_kills(const std::string& text) {
  std::istringstream lines(text);
  std::string name;
  std::int64_t count = 0;
  while (lines >> name >> count)
    if (name == "oom_kill") return count;
  return std::nullopt;
}

std::optional<std::int64_t> memory_kills() {
  return parse_memory_kills(whole_file("/proc/vmstat"));
}

}  // namespace trainyard::orchestrator
