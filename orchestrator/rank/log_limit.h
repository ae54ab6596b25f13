// Limit of a rank's log, which its program can fill without end. Used by whoever runs on the host of the rank:
// the sweep, or the agent on a node of a cluster.
#pragma once

#include <filesystem>

namespace trainyard::orchestrator {

inline constexpr std::uintmax_t largest_log = std::uintmax_t{64} << 20;

// Shortens a log that is larger than `limit`. Returns whether it was.
// - Its last `limit` bytes become "rank-0.1.log", in place of the ones before. Older bytes are lost.
// - The log continues with a line that says so. Its writer must append.
// - What the writer writes meanwhile can be lost.
bool shorten_log(const std::filesystem::path& log, std::uintmax_t limit = largest_log);

}  // namespace trainyard::orchestrator
