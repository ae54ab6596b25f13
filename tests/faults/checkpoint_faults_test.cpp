// Faults around checkpoints: killed processes, full disks, damaged files.
// A run resumes from the last intact checkpoint and has the results of an undisturbed run.
#include <fstream>

#include <doctest/doctest.h>

#include "experiments/protocol/checkpoint.h"
#include "tests/faults/faulty_sweep.h"

using namespace trainyard;
using namespace trainyard::faults;

namespace {

bool any_second_attempt(const FaultySweep& sweep) {
  const auto database = db::Database::open_read_only(sweep.yard() / "results.db");
  return !db::select(database, "SELECT 1 FROM attempt WHERE attempt > 1").rows.empty();
}

}  // namespace

TEST_CASE("a rank resumes if it is killed, or the disk is full, at any call while it writes checkpoints") {
  FaultySweep sweep(true);
  sweep.bench().options.max_retries = 1;
  sweep.bench().options.backoff_seconds = 0;
  for (const Fault fault : {Fault::killed, Fault::full}) {
    bool met = true;
    for (long at = 1; met; at += stride(4)) {
      sweep.forget();
      const std::string what = std::to_string(at) + " " + name_of(fault);
      sweep.bench().on_message("FAULT", what);
      expect_survived(sweep, "writing checkpoints: " + what);
      met = any_second_attempt(sweep);
      REQUIRE((met || at > 8));  // each checkpoint makes more than two calls
    }
  }
}

TEST_CASE("if an orchestrator is killed at any call, its runs resume from their checkpoints") {
  FaultySweep sweep(true);
  sweep.forget();
  const long calls = sweep.run().calls;
  for (long at = 2; at <= calls; at += stride(19)) {
    sweep.forget();
    sweep.run(Fault::killed, at);
    expect_survived(sweep, "checkpoints, killed at call " + std::to_string(at));
  }
}

TEST_CASE("a checkpoint that is truncated or has a flipped bit at any byte never gives a wrong result") {
  FaultySweep sweep(true);
  const auto file = experiments::checkpoint_file(
      sweep.yard() / "runs" / sweep.bench().key(0) / experiments::checkpoints_folder_name, 2, 0);
  std::size_t bytes = 2;
  for (std::size_t place = 0; place < bytes; place += static_cast<std::size_t>(stride(211))) {
    sweep.forget();
    sweep.bench().on_message("0", "kill-after-6");  // in both runs, after the checkpoint of epoch 2
    CHECK(sweep.run().code == 3);
    sweep.bench().on_message("0", "finish");
    std::string damaged = orchestrator::text_of(file);
    bytes = damaged.size();
    REQUIRE(bytes > 1000);
    if (place % 2 == 0)
      damaged[place] = static_cast<char>(damaged[place] ^ (1 << (place % 8)));
    else
      damaged.resize(place);
    std::ofstream(file, std::ios::binary) << damaged;
    expect_survived(sweep, "checkpoint damaged at byte " + std::to_string(place));
  }
}
