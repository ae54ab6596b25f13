// Outcome of an attempt: finished, failed because of a rank, or interrupted. It is a pure function of what
// supervision has seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/protocol/end_reason.h"
#include "orchestrator/launch/launcher.h"

namespace trainyard::orchestrator {

// Rank that failed before it received a signal to end.
struct RankFailure {
  int rank = 0;
  ExitStatus status;
  std::string error;  // one line
  // From its `end` record, else derived from its error.
  experiments::EndReason reason = experiments::EndReason::failed;
};

struct AttemptEnd {
  experiments::EndReason reason = experiments::EndReason::finished;
  std::optional<int> rank = {};  // the rank with details in its log
  std::string error = {};        // empty if it has finished
};

// What is known once all processes of the attempt have ended.
struct AttemptEvidence {
  bool finished = false;  // every rank reported it
  // A rank wrote too much. Or every rank finished, but a declared file has changed or records are impossible.
  std::optional<AttemptEnd> ruled_out = {};
  RankGroupEnd group = {};                 // as the launcher saw it
  bool stopped = false;                    // the sweep was stopped
  std::vector<RankFailure> failures = {};  // in the order of detection
  std::optional<AttemptEnd> hang = {};     // no progress: the rank that stalled first
  std::string why_ended = {};              // why its ranks were ended
  std::int64_t resumed_after = 0;          // epoch after which this attempt started
  std::int64_t resumable_after = 0;        // epoch after which the next attempt would start
};

AttemptEnd end_of(const AttemptEvidence& seen);

// A rank that was killed, or whose device or node failed. Empty text: none, or the attempt did not fail by it.
struct Loss {
  std::string what;         // "rank 2 was killed"
  std::optional<int> rank;  // empty: not known
};
Loss loss_of(const AttemptEvidence& seen);

// The failure that caused the others. Null if there is none.
const RankFailure* cause_of(const std::vector<RankFailure>& failures);

}  // namespace trainyard::orchestrator
