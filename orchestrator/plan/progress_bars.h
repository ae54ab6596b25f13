// Progress on a terminal: bars as values, their drawing as text, and the time left.
//
// What the terminal shows, as values, and its drawing as text: pure functions, so that tests see every
// character. Escape sequences are colours only; the status that draws on a terminal moves the cursor.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/protocol/progress.h"
#include "orchestrator/plan/plan.h"

namespace trainyard::orchestrator {

struct RunBar {
  std::string label;
  experiments::Progress progress;
  double fraction = 0;  // of the whole run
  double elapsed_seconds = 0;
  std::optional<double> steps_per_second;
  std::optional<double> seconds_left;
};

struct SweepBar {
  std::size_t done = 0;  // finished, failed or interrupted
  std::size_t failed = 0;
  std::size_t total = 0;  // to run in this sweep
  double fraction = 0;    // of all, runs under way counted in part
  double elapsed_seconds = 0;
  std::optional<double> seconds_left;
};

struct TerminalView {
  std::vector<RunBar> runs;  // under way
  SweepBar sweep;
};

// `width` columns of "━━━━━╸────".
std::string bar(double fraction, std::size_t width, bool colour);

// The lines of a frame, none wider than `width` columns: parts that do not fit are left out from the right.
std::vector<std::string> draw(const TerminalView& view, std::size_t width, bool colour);

// How long the rest takes: from finished runs of the same kind, and from how far a run has come.

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
