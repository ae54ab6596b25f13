// Why a rank, its job or an attempt ended. The same words for all of them: in the `end` record of a rank,
// between launcher and supervision, and in the status of a sweep.
#pragma once

#include <optional>
#include <string_view>

namespace trainyard::experiments {

enum class EndReason {
  finished,     // everything was done
  failed,       // by an error of its own
  peer_lost,    // another rank has gone or did not answer: a consequence, never the cause
  stopped,      // told to end by the sweep, or by somebody else's `scancel`
  preempted,    // taken away with its job or host: no fault of the run
  out_of_time,  // at its time limit
  over_limits,  // took more memory than it may
  not_started   // could not be launched
};

std::string_view to_text(EndReason reason);  // "peer_lost": the member `reason` of an `end` record
std::optional<EndReason> end_reason_named(std::string_view text);  // nothing for any other text

// What an attempt is that ended so, as the database has it: "finished", "failed" or "interrupted".
std::string_view status_of(EndReason reason);
bool is_failure(EndReason reason);       // "failed"
bool is_interruption(EndReason reason);  // "interrupted": a later attempt continues the run

// Whether the run is tried again at once, which costs none of its retries.
bool starts_again(EndReason reason);

// Reads the error text of a rank that states no reason: records of earlier releases, and programs of others,
// whose last words are in their logs. `peer_lost` if the text blames a peer, else `failed`.
EndReason reason_in_text(std::string_view error);

}  // namespace trainyard::experiments
