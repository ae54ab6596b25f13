// Why a rank, its job or an attempt ended. The `end` record of a rank, launchers, supervision and the status
// of a sweep all use these reasons.
#pragma once

#include <optional>
#include <string_view>

namespace trainyard::experiments {

enum class EndReason {
  finished,     // everything was done
  failed,       // because of its own error
  peer_lost,    // another rank ended or did not answer; never the root cause
  stopped,      // by the sweep, or by `scancel` of somebody else
  preempted,    // job or host was preempted
  out_of_time,  // at its time limit
  over_limits,  // used more memory than allowed
  not_started   // could not be launched
};

std::string_view to_text(EndReason reason);  // "peer_lost": the member `reason` of an `end` record
std::optional<EndReason> end_reason_named(std::string_view text);  // empty for any other text

// The status of such an attempt in the database: "finished", "failed" or "interrupted".
std::string_view status_of(EndReason reason);
bool is_failure(EndReason reason);       // "failed"
bool is_interruption(EndReason reason);  // "interrupted": a later attempt continues the run

// Whether the run is started again at once, without using one of its retries.
bool starts_again(EndReason reason);

// The reason from an error text, for programs that state no reason. `peer_lost` if the text blames a peer, else `failed`.
EndReason reason_in_text(std::string_view error);

}  // namespace trainyard::experiments
