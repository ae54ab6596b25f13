#include "orchestrator/sweep/attempt_end.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace trainyard::orchestrator {

using experiments::EndReason;

namespace {

std::optional<int> first_failed(const AttemptEvidence& seen) {
  const RankFailure* cause = cause_of(seen.failures);
  return cause == nullptr ? std::nullopt : std::optional(cause->rank);
}

// If the attempt has checkpointed at least one more epoch, the next one continues there. Else the next
// attempt would end at the same epoch, so the run has failed.
AttemptEnd out_of_time(const AttemptEvidence& seen) {
  if (seen.resumable_after > seen.resumed_after)
    return {
        EndReason::out_of_time, {}, fmt::format("{} after epoch {}", seen.group.why, seen.resumable_after)};
  return {EndReason::failed,
          {},
          seen.group.why + "; raise time_limit in [machine], or set checkpoint = \"epoch\""};
}

}  // namespace

// Order: signals before exit codes, own errors before errors about a peer, then the order of detection.
const RankFailure* cause_of(const std::vector<RankFailure>& failures) {
  const auto order = [](const RankFailure& failure) {
    return std::make_tuple(failure.status.signal == 0, failure.reason == EndReason::peer_lost);
  };
  const auto cause = std::ranges::min_element(failures, {}, order);
  return cause == failures.end() ? nullptr : &*cause;
}

AttemptEnd end_of(const AttemptEvidence& seen) {
  if (seen.ruled_out) return *seen.ruled_out;
  if (seen.finished) return {};
  const auto job = seen.group.reason;
  if (job == EndReason::not_started) return {*job, {}, seen.group.why};
  if (job == EndReason::out_of_time && !seen.stopped) return out_of_time(seen);
  if (job == EndReason::over_limits && !seen.stopped) return {*job, first_failed(seen), seen.group.why};
  if (job && !seen.stopped) return {*job, {}, seen.group.why};
  if (const RankFailure* cause = cause_of(seen.failures))
    return {EndReason::failed, cause->rank, cause->error};
  if (seen.hang) return *seen.hang;
  return {EndReason::stopped, {}, seen.why_ended};
}

Loss loss_of(const AttemptEvidence& seen) {
  const AttemptEnd end = end_of(seen);
  if (end.reason == EndReason::preempted && seen.group.why.find("NODE_FAIL") != std::string::npos)
    return {"a node failed", {}};
  const RankFailure* cause = cause_of(seen.failures);
  if (cause == nullptr || end.rank != cause->rank || end.reason != EndReason::failed || seen.ruled_out)
    return {};
  if (cause->status.signal != 0) return {fmt::format("rank {} was killed", cause->rank), cause->rank};
  if (cause->error.find("CUDA error") != std::string::npos)
    return {fmt::format("the device of rank {} failed", cause->rank), cause->rank};
  return {};
}

}  // namespace trainyard::orchestrator
