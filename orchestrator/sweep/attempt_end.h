// How an attempt went: finished, failed and by whose fault, or interrupted. Pure: from what supervision has
// seen, and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/protocol/end_reason.h"
#include "orchestrator/launch/launcher.h"

namespace trainyard::orchestrator {

// A rank that ended badly before anyone told it to end.
struct RankFailure {
  int rank = 0;
  ExitStatus status;
  std::string error;  // one line
  experiments::EndReason reason =
      experiments::EndReason::failed;  // as the rank states it, or its error reads
};

struct RankError {
  int rank = 0;
  std::string error;
};

// What is known once nothing of the attempt is left.
struct AttemptEvidence {
  bool finished = false;                   // every rank says so
  std::optional<RankError> fault = {};     // and yet its records cannot be true
  RankGroupEnd group = {};                 // as the launcher saw it
  bool stopped = false;                    // the sweep was told to stop
  std::vector<RankFailure> failures = {};  // in the order in which they were seen
  std::optional<RankError> hang = {};      // no rank got on: the one that stood still first
  std::string why_ended = {};              // why its ranks were told to end
  std::int64_t resumed_after = 0;          // the epoch after which it began
  std::int64_t resumable_after = 0;        // the epoch after which a next attempt would
};

struct AttemptEnd {
  experiments::EndReason reason = experiments::EndReason::finished;
  std::optional<int> rank = {};  // whose log says more
  std::string error = {};        // empty if it has finished
};

AttemptEnd end_of(const AttemptEvidence& seen);

// The failure that is not the consequence of another one. Null if there is none.
const RankFailure* cause_of(const std::vector<RankFailure>& failures);

}  // namespace trainyard::orchestrator
