// Runs a plan: leases devices, launches a process a rank, watches, collects spools into the database, and
// ends everything in order when it is told to stop.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "experiments/design/experiment.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/plan/status.h"
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
  int skipped = 0;  // were finished before
  std::vector<Failure> failures;
  int not_started = 0;       // given up after so many failures
  std::string stopped_by;    // what the disk did not take: it ended the sweep; empty where it did
  bool interrupted = false;  // by a signal
};

struct SweepOptions {
  double grace_seconds = 2.5;  // between SIGTERM and SIGKILL
  double peer_seconds = 1;     // a dead rank's peers, which may notice themselves, get SIGTERM after this
  double progress_timeout_seconds = 1800;  // a run without any progress for so long has failed; 0 = never
  int max_retries = 0;                     // of each run that fails
  double backoff_seconds = 1;  // before the first retry, doubled before each further one; at most a minute
  int max_failures = 0;        // runs that failed, after which no further one is started; 0 = no limit
  bool fail_fast = false;      // the first failed run ends all others
  bool host_locked = false;    // the caller holds the lock of this host (`host_lock.h`)
  double others_limit = orchestrator::others_limit;  // share of its cores that others may take of a timed run
};

// Carries out a plan that was made after `recover` (`recovery.h`). `stop` is set by a signal handler (1: in
// order; 2: at once). The yard must be locked by the caller. Where the disk is full or fails, all runs are
// ended and the result says so; what was recorded stays, and the same sweep goes on later.
SweepResult run_sweep(const experiments::Experiment& experiment, const Plan& plan, const Yard& yard,
                      db::Database& database, const Programs& programs, Launcher& launcher, Status& status,
                      const std::atomic<int>& stop, const SweepOptions& options = {});

}  // namespace trainyard::orchestrator
