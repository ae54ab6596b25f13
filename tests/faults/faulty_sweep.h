// A small sweep (one run with one rank, one with two) in a child process, with all the steps of `trainyard
// run`: lock, database, journal, plan, sweep. Its results can be compared with those of an undisturbed sweep.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/faults/fault_layer.h"
#include "tests/orchestrator/support/sweep_fixture.h"

namespace trainyard::faults {

namespace fs = std::filesystem;

struct Ended {
  bool killed = false;
  int code = 0;    // 0 finished, 1 stopped with a reason, 2 refused, 3 anything else
  long calls = 0;  // counted by the fault layer
};

class FaultySweep {
 public:
  // With checkpoints, runs have more epochs, and each loss depends on all epochs before it.
  explicit FaultySweep(bool checkpoints = false);
  const fs::path& yard() const { return bench_.yard.root(); }
  orchestrator::SweepFixture& bench() { return bench_; }
  void forget();  // empties the yard

  Ended run(Fault fault = Fault::none, long at_call = 0, long clock_shift = 0);
  pid_t start(Fault fault, long at_call, long clock_shift);  // does not wait
  Ended wait(pid_t pid);

  // Removes what the last child had not synced, as a power cut may. Call it after the child was killed.
  enum class Lost {
    records,          // record files and names, but the database has all that was written
    half_records,     // the same, but half of the bytes that were not synced are left
    zeroed_records,   // the same, but all of these bytes are zeros
    records_and_log,  // also the database's own log
  };
  void cut_power(Lost lost);

  // The first difference between this yard and that of an undisturbed sweep. Empty if there is none.
  std::string difference() const;

 private:
  int sweep_in_child();
  std::vector<std::string> results() const;

  orchestrator::SweepFixture bench_;
  experiments::Circumstances machine_;
  long* calls_;     // shared with the children
  Synced* synced_;  // shared with the children
  std::vector<std::string> undisturbed_;
};

// The distance between tried faults: 1 with TRAINYARD_FAULTS=all, otherwise `of_many`.
long stride(long of_many);

// The faults tried and survived. Printed at the end of the program.
struct Tally {
  long tried = 0, survived = 0;
};
Tally& tally();

// Counts a fault and checks that a new sweep finishes with the results of an undisturbed one.
void expect_survived(FaultySweep& sweep, const std::string& what);

}  // namespace trainyard::faults
