// Times as records carry them: UTC, "2026-11-20T09:30:12.345Z". Programs of others may write any time of RFC
// 3339, and one without a zone, which is UTC; all of them become that one form, whose order as a text is that
// of the times. Used where records are read.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::experiments {

std::string utc_text(std::chrono::sys_time<std::chrono::milliseconds> time);

// `text` in that form: converted from its offset, cut to milliseconds. Nothing where it is no time.
std::optional<std::string> utc_time(std::string_view text);

}  // namespace trainyard::experiments
