// Runs a plan: leases devices, launches a process a rank, watches, collects spools into the database, and
// ends everything in order when it is told to stop.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "db/database.h"
#include "experiments/file.h"
#include "orchestrator/launcher.h"
#include "orchestrator/plan.h"
#include "orchestrator/programs.h"
#include "orchestrator/status.h"
#include "orchestrator/yard.h"

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
  bool interrupted = false;
};

struct SweepOptions {
  double grace_seconds = 2.5;  // between SIGTERM and SIGKILL
  double peer_seconds = 1;     // a dead rank's peers, which may notice themselves, get SIGTERM after this
};

// Before it: the journal entry is appended and ingested. `stop` is set by a signal handler (1: in order; 2:
// at once). The yard must be locked by the caller. Attempts that a killed orchestrator left behind are first
// marked interrupted (and what is still alive of them is ended).
SweepResult run_sweep(const experiments::Experiment& experiment, const Plan& plan, const Yard& yard,
                      db::Database& database, const Programs& programs, Launcher& launcher, Status& status,
                      const std::atomic<int>& stop, const SweepOptions& options = {});

}  // namespace trainyard::orchestrator
