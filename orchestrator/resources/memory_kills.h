// How often the kernel of this host killed a process because memory ran out.
// Exit status and log of a killed rank say only "signal 9". With this count the reason can be named.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainyard::orchestrator {

// The number after "oom_kill" in /proc/vmstat, which includes kills at the limit of a cgroup. Empty if there is none.
std::optional<std::int64_t> parse_memory_kills(const std::string& text);
std::optional<std::int64_t> memory_kills();  // of this host since it was started

}  // namespace trainyard::orchestrator
