// How long the rest takes: from finished runs of the same kind, and from how far a run has come.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/protocol/progress.h"
#include "orchestrator/plan/plan.h"

namespace trainyard::orchestrator {

// Share of the run's epochs that is done, in [0, 1].
double fraction_done(const experiments::Progress& progress);

// Seconds left of a run that has done `fraction` in `elapsed`; `expected` is the time of its kind, which
// counts until the run itself has come far enough. Nothing while there is nothing to go by.
std::optional<double> seconds_left(double fraction, double elapsed, std::optional<double> expected);

// Seconds that whole runs take, learned from a plan and from the runs that end.
class RunTimes {
 public:
  RunTimes() = default;
  explicit RunTimes(const Plan& plan);
  void started(const PlannedRun& run);                // it no longer waits
  void waits_again(const PlannedRun& run);            // it failed and is tried once more
  void ended(const PlannedRun& run, double seconds);  // a finished one
  std::optional<double> expected(const PlannedRun& run) const;
  std::optional<double> waiting_seconds()
      const;  // of all that have not started; nothing where one is unknown

 private:
  struct Kind {
    std::optional<double> known;  // from the database
    double sum = 0;               // of this sweep
    int count = 0;
    int waiting = 0;
  };
  std::optional<double> expected(const Kind& kind) const;
  std::map<std::string, Kind> kinds_;  // by kind_of(run)
};

}  // namespace trainyard::orchestrator
