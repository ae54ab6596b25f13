// How an attempt ended, and which of several causes is used.
#include "orchestrator/sweep/attempt_end.h"

#include <csignal>

#include <doctest/doctest.h>

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

using experiments::EndReason;

RankFailure failed_rank(int rank, int code, int signal = 0, EndReason reason = EndReason::failed) {
  return {rank, {code, signal}, "error of rank " + std::to_string(rank), reason};
}

void check_end(const AttemptEvidence& seen, EndReason reason, std::optional<int> rank,
               const std::string& error) {
  const AttemptEnd end = end_of(seen);
  CHECK(end.reason == reason);
  CHECK(end.rank == rank);
  CHECK(end.error == error);
}

}  // namespace

TEST_CASE(
    "an attempt has finished if all ranks recorded it, even if its job failed or the sweep was stopped") {
  check_end({.finished = true}, EndReason::finished, {}, "");
  check_end({.finished = true,
             .group = {EndReason::preempted, "NODE_FAIL"},
             .stopped = true,
             .failures = {failed_rank(0, 1)}},
            EndReason::finished, {}, "");
}

TEST_CASE("an attempt whose ranks recorded success fails if the records are inconsistent") {
  check_end({.finished = true,
             .ruled_out = AttemptEnd{EndReason::failed, 2, "epoch 3 is missing (rank-2.records.jsonl:4)"}},
            EndReason::failed, 2, "epoch 3 is missing (rank-2.records.jsonl:4)");
}

TEST_CASE("an attempt that could not be launched fails without a rank, even in a stopped sweep") {
  for (const bool stopped : {false, true})
    check_end({.group = {EndReason::not_started, "no such program"}, .stopped = stopped},
              EndReason::not_started, {}, "no such program");
}

TEST_CASE("a preempted job is not the fault of a rank, unless the sweep was stopped") {
  AttemptEvidence seen{.group = {EndReason::preempted, "NODE_FAIL"}, .failures = {failed_rank(1, 3)}};
  check_end(seen, EndReason::preempted, {}, "NODE_FAIL");
  seen.stopped = true;
  check_end(seen, EndReason::failed, 1, "error of rank 1");
  seen.failures.clear();
  seen.why_ended = "the sweep was stopped";
  check_end(seen, EndReason::stopped, {}, "the sweep was stopped");
}

TEST_CASE("a job at its time limit is retried only if it kept at least one more epoch") {
  AttemptEvidence seen{.group = {EndReason::out_of_time, "its time limit was reached"},
                       .resumed_after = 4,
                       .resumable_after = 6};
  check_end(seen, EndReason::out_of_time, {}, "its time limit was reached after epoch 6");
  seen.resumable_after = 4;
  check_end(seen, EndReason::failed, {},
            "its time limit was reached; raise time_limit in [machine], or set checkpoint = \"epoch\"");
}

TEST_CASE("a job over its limits fails, and the log is that of the rank that died first") {
  AttemptEvidence seen{.group = {EndReason::over_limits, "OUT_OF_MEMORY"}};
  check_end(seen, EndReason::over_limits, {}, "OUT_OF_MEMORY");
  seen.failures = {failed_rank(0, 1, 0, EndReason::peer_lost), failed_rank(1, -1, SIGKILL)};
  check_end(seen, EndReason::over_limits, 1, "OUT_OF_MEMORY");
}

TEST_CASE(
    "a rank is lost if it was killed, or if its device or node failed, but not by an error of its own") {
  const auto loss = [](const AttemptEvidence& seen) {
    const Loss found = loss_of(seen);
    return found.what + (found.rank ? " [" + std::to_string(*found.rank) + "]" : "");
  };
  CHECK(loss({.failures = {failed_rank(0, 1, 0, EndReason::peer_lost), failed_rank(2, -1, SIGKILL)}}) ==
        "rank 2 was killed [2]");
  RankFailure on_gpu = failed_rank(1, 1);
  on_gpu.error = "CUDA error: uncorrectable ECC error encountered";
  CHECK(loss({.failures = {on_gpu}}) == "the device of rank 1 failed [1]");
  CHECK(loss({.group = {EndReason::preempted, "its Slurm job 7: NODE_FAIL (NodeDown)"}}) == "a node failed");
  CHECK(loss({.group = {EndReason::preempted, "its Slurm job 7: PREEMPTED"}}) == "");
  CHECK(loss({.failures = {failed_rank(1, 3)}}) == "");
  CHECK(loss({.group = {EndReason::over_limits, "OUT_OF_MEMORY"},
              .failures = {failed_rank(1, -1, SIGKILL)}}) == "");
  CHECK(loss({.finished = true, .failures = {failed_rank(1, -1, SIGKILL)}}) == "");
}

TEST_CASE("the failure of a rank has priority over a hang, and a hang over a requested end") {
  AttemptEvidence seen{.hang = AttemptEnd{EndReason::failed, 1, "no progress for 3 s"},
                       .why_ended = "no progress for 3 s"};
  check_end(seen, EndReason::failed, 1, "no progress for 3 s");
  seen.failures = {failed_rank(0, 3)};
  check_end(seen, EndReason::failed, 0, "error of rank 0");
  check_end({.why_ended = "rank 0 has ended before the run did"}, EndReason::stopped, {},
            "rank 0 has ended before the run did");
}

TEST_CASE(
    "the cause is a signal before an exit code, an own error before a lost peer, then the first failure") {
  const auto cause = [](const std::vector<RankFailure>& failures) { return cause_of(failures)->rank; };
  const auto victim = [](int rank) { return failed_rank(rank, 3, 0, EndReason::peer_lost); };
  CHECK(cause({failed_rank(4, 3), failed_rank(2, 1)}) == 4);
  CHECK(cause({victim(0), failed_rank(1, 3), victim(2)}) == 1);
  CHECK(cause({victim(0), failed_rank(1, 3), failed_rank(2, -1, SIGSEGV)}) == 2);
  CHECK(cause({victim(3), victim(1)}) == 3);
  CHECK(cause_of({}) == nullptr);
}
