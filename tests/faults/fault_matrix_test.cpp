// The fault matrix. After any fault of an orchestrator, a rank or a record log, the same command finishes the
// sweep. It has the results of an undisturbed sweep, leaves no process and trains nothing twice.
// TRAINYARD_FAULTS=all tries every fault. Otherwise each test tries a sample that takes seconds.
#include <algorithm>

#include <doctest/doctest.h>

#include "db/ingest/maintenance.h"
#include "experiments/protocol/record.h"
#include "tests/faults/faulty_sweep.h"

using namespace trainyard;
using namespace trainyard::faults;

TEST_CASE("an orchestrator that is killed at any write, sync, rename or commit loses nothing") {
  FaultySweep sweep;
  sweep.forget();
  const long calls = sweep.run().calls;
  REQUIRE(calls > 40);
  for (long at = 1; at <= calls; at += stride(6)) {
    sweep.forget();
    sweep.run(Fault::killed, at);
    expect_survived(sweep, "killed at call " + std::to_string(at));
  }
}

TEST_CASE("after a power cut at any call, the same command finishes the sweep and the files are sound") {
  FaultySweep sweep;
  sweep.forget();
  const long calls = sweep.run().calls;
  for (const auto lost : {FaultySweep::Lost::records, FaultySweep::Lost::half_records,
                          FaultySweep::Lost::zeroed_records, FaultySweep::Lost::records_and_log})
    for (long at = 1 + static_cast<long>(lost); at <= calls; at += stride(17)) {
      sweep.forget();
      sweep.run(Fault::killed, at);
      sweep.cut_power(lost);
      const std::string what =
          "power cut at call " + std::to_string(at) + ", case " + std::to_string(static_cast<int>(lost));
      expect_survived(sweep, what);
      const auto database = db::Database::open_read_only(sweep.yard() / "results.db");
      const auto check = db::check_files(sweep.yard(), &database);
      for (const auto& problem : check.unreadable) CHECK_MESSAGE(problem.empty(), (what + ": " + problem));
      CHECK(check.kept.empty());
    }
}

TEST_CASE("a disk that is full, broken or read-only stops the sweep with a reason, and nothing is lost") {
  FaultySweep sweep;
  sweep.forget();
  const long calls = sweep.run().calls;
  for (const Fault fault : {Fault::full, Fault::broken, Fault::read_only})
    for (long at = 1 + static_cast<long>(fault); at <= calls; at += stride(29)) {
      sweep.forget();
      const Ended ended = sweep.run(fault, at);
      const std::string what = std::string(name_of(fault)) + " from call " + std::to_string(at) + " on";
      CHECK_MESSAGE(!ended.killed, what);
      CHECK_MESSAGE(ended.code <= 2, what);  // with a reason, because an internal error is 3
      expect_survived(sweep, what);
    }
}

TEST_CASE("a rank that is killed after any record costs one attempt and nothing else") {
  FaultySweep sweep;
  sweep.bench().options.max_retries = 1;
  sweep.bench().options.backoff_seconds = 0;
  for (const char* rank : {"0", "1"})
    for (int records = 0; records <= 4; ++records) {
      sweep.forget();
      sweep.bench().on_message(rank, "kill-after-" + std::to_string(records));
      expect_survived(sweep, std::string("rank ") + rank + " killed after " + std::to_string(records));
      sweep.bench().on_message(rank, "finish");
    }
}

TEST_CASE("if two orchestrators start at once, one of them is refused, and the sweep is trained once") {
  FaultySweep sweep;
  for (int round = 0; round < 3; ++round) {
    sweep.forget();
    const pid_t first = sweep.start(Fault::none, 0, 0), second = sweep.start(Fault::none, 0, 0);
    const int codes[] = {sweep.wait(first).code, sweep.wait(second).code};
    CHECK(std::min(codes[0], codes[1]) == 0);
    CHECK(
        (std::max(codes[0], codes[1]) == 2 || std::max(codes[0], codes[1]) == 0));  // 0: one after the other
    expect_survived(sweep, "two at once");
  }
}

TEST_CASE("a clock that is set back by a day between two attempts changes no result") {
  FaultySweep sweep;
  sweep.forget();
  const long calls = sweep.run().calls;
  for (const long at : {calls / 3, calls / 2, calls - 3}) {
    sweep.forget();
    sweep.run(Fault::killed, at, 86'400);
    expect_survived(sweep, "clock set back, killed at call " + std::to_string(at));
  }
}
