// Sweep: runs a plan. It leases devices, launches one process per rank, supervises them, ingests their
// records, and stops in order on request.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "experiments/design/experiment.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/plan/status.h"
#include "orchestrator/resources/device_leases.h"
#include "orchestrator/resources/processor_use.h"
#include "orchestrator/resources/programs.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

struct Failure {
  std::string key;
  std::string label;
  std::string first_error;
  std::string log;
};

struct SweepResult {
  int finished = 0;
  int skipped = 0;  // finished before this sweep
  std::vector<Failure> failures;
  int not_started = 0;       // after too many failures
  int not_needed = 0;        // because their cells were decided without them
  std::string stopped_by;    // disk error or move of the yard that ended the sweep; empty: none
  bool yard_moved = false;   // `stopped_by` is a move of the yard
  bool interrupted = false;  // by a signal
};

struct SweepOptions {
  double grace_seconds = 2.5;  // between SIGTERM and SIGKILL
  // Between the loss of a rank and SIGTERM to its peers, which may notice the loss themselves.
  double peer_seconds = 1;
  double progress_timeout_seconds = 1800;  // a run fails after this long without progress; 0 = never
  int max_retries = 0;                     // per failed run
  double backoff_seconds = 1;              // before the first retry; doubles with each retry, up to a minute
  int max_failures = 0;                    // no run is started after so many failures; 0 = no limit
  bool fail_fast = false;                  // the first failed run ends all others
  // Leases of this host's cores and GPUs: a run that does not get its devices waits. Null: runs lease none.
  DeviceLeases* leases = nullptr;
  const YardLock* yard_lock = nullptr;  // tells whether the yard is moved during the sweep; null: not checked
  // Share of a timed run's cores that other processes may take.
  double others_limit = orchestrator::others_limit;
  // The runs that are still needed. It is called before the first run and when runs have ended. Null: all runs.
  std::function<Needed(const db::Database&)> needed = nullptr;
};

// Runs a plan that was made after `recover` (`recovery.h`).
// - The caller must hold the lock of the yard.
// - `stop` is set by a signal handler: 1 stops in order, 2 at once.
// - If the disk is full or fails, all runs are ended and the result says so. Recorded data stays, and the
//   same sweep can continue later.
// - If the yard is moved, the same happens. Nothing is created at its old path.
SweepResult run_sweep(const experiments::Experiment& experiment, const Plan& plan, const Yard& yard,
                      db::Database& database, const Programs& programs, Launcher& launcher, Status& status,
                      const std::atomic<int>& stop, const SweepOptions& options = {});

}  // namespace trainyard::orchestrator
