#include "experiments/protocol/end_reason.h"

#include <doctest/doctest.h>

using namespace trainyard::experiments;

TEST_CASE("each end reason has a unique name") {
  for (const auto reason :
       {EndReason::finished, EndReason::failed, EndReason::peer_lost, EndReason::stopped,
        EndReason::preempted, EndReason::out_of_time, EndReason::over_limits, EndReason::not_started})
    CHECK(end_reason_named(to_text(reason)) == reason);
  CHECK(to_text(EndReason::peer_lost) == "peer_lost");
  CHECK_FALSE(end_reason_named("").has_value());
  CHECK_FALSE(end_reason_named("Failed").has_value());
}

TEST_CASE("a preempted or stopped attempt is interrupted, and any other unfinished one has failed") {
  CHECK(status_of(EndReason::finished) == "finished");
  for (const auto reason :
       {EndReason::failed, EndReason::peer_lost, EndReason::over_limits, EndReason::not_started}) {
    CHECK(status_of(reason) == "failed");
    CHECK(is_failure(reason));
    CHECK_FALSE(is_interruption(reason));
  }
  for (const auto reason : {EndReason::stopped, EndReason::preempted, EndReason::out_of_time}) {
    CHECK(status_of(reason) == "interrupted");
    CHECK(is_interruption(reason));
    CHECK_FALSE(is_failure(reason));
  }
}

TEST_CASE("only attempts that end through no fault of the run and no request restart at once") {
  CHECK(starts_again(EndReason::preempted));
  CHECK(starts_again(EndReason::out_of_time));
  for (const auto reason : {EndReason::finished, EndReason::failed, EndReason::peer_lost, EndReason::stopped,
                            EndReason::over_limits, EndReason::not_started})
    CHECK_FALSE(starts_again(reason));
}

TEST_CASE("an error text without a reason blames a peer if it has a phrase of Gloo, NCCL or sockets") {
  for (const char* text : {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection "
                           "closed by peer [127.0.0.1]:2907",
                           "Connection reset by peer", "connect() failed: Connection refused",
                           "write: Broken pipe", "Timed out waiting 1800000ms for recv operation to complete",
                           "Watchdog caught collective operation timeout"})
    CHECK(reason_in_text(text) == EndReason::peer_lost);
  CHECK(reason_in_text("") == EndReason::failed);
  CHECK(reason_in_text("the loss is not a number in epoch 1, step 12") == EndReason::failed);
}
