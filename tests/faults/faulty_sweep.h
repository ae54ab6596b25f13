// A small sweep (a run of one rank, a run of two), run in a process of its own by the whole way of `trainyard
// run`: lock, database, journal, plan, sweep. What it leaves can be compared with an undisturbed one.
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
  int code = 0;    // 0 all finished, 1 stopped and said why, 2 refused, 3 anything else
  long calls = 0;  // counted by the fault layer
};

class FaultySweep {
 public:
  // With checkpoints the runs have more epochs, and losses that hang on all epochs before.
  explicit FaultySweep(bool checkpoints = false);
  const fs::path& yard() const { return bench_.yard.root(); }
  orchestrator::SweepFixture& bench() { return bench_; }
  void forget();  // empties the yard

  Ended run(Fault fault = Fault::none, long at_call = 0, long clock_shift = 0);
  pid_t start(Fault fault, long at_call, long clock_shift);  // and does not wait
  Ended wait(pid_t pid);

  // Why what the yard holds is not what an undisturbed sweep leaves; empty where it is.
  std::string difference() const;

 private:
  int sweep_in_child();
  std::vector<std::string> results() const;

  orchestrator::SweepFixture bench_;
  experiments::Circumstances machine_;
  long* calls_;  // shared with the children
  std::vector<std::string> undisturbed_;
};

// Of a kind of fault each one is tried with TRAINYARD_FAULTS=all, else one of so many.
long stride(long of_many);

// How many faults were tried and survived; printed at the end of the program.
struct Tally {
  long tried = 0, survived = 0;
};
Tally& tally();

// Counts a fault: a successor finishes what it left, with the results of an undisturbed sweep.
void expect_survived(FaultySweep& sweep, const std::string& what);

}  // namespace trainyard::faults
