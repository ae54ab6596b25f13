// Progress on a terminal: the bars as values, their drawing as text, and the time left.
//
// All functions are pure, so tests can check every character. Escape sequences only set colours.
// `terminal_status` moves the cursor.
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
  double fraction = 0;    // of all runs; active runs count in part
  double elapsed_seconds = 0;
  std::optional<double> seconds_left;
};

struct TerminalView {
  std::vector<RunBar> runs;  // active runs
  SweepBar sweep;
};

// `width` columns of "━━━━━╸────".
std::string bar(double fraction, std::size_t width, bool colour);

// Lines of one frame, at most `width` columns wide. Parts that do not fit are dropped from the right.
std::vector<std::string> draw(const TerminalView& view, std::size_t width, bool colour);

// Estimates of the time left.

// Completed share of the run's epochs, in [0, 1].
double fraction_done(const experiments::Progress& progress);

// Seconds left for a run that has done `fraction` in `elapsed` seconds. Empty if they cannot be estimated.
// `expected`: usual seconds of its kind, used until the run itself has done a tenth.
std::optional<double> seconds_left(double fraction, double elapsed, std::optional<double> expected);

// Seconds per whole run, learned from a plan and from finished runs.
class RunTimes {
 public:
  RunTimes() = default;
  explicit RunTimes(const Plan& plan);
  void started(const PlannedRun& run);                // it is no longer waiting
  void waits_again(const PlannedRun& run);            // it failed and will be retried
  void ended(const PlannedRun& run, double seconds);  // only for finished runs
  std::optional<double> expected(const PlannedRun& run) const;
  // For all runs that have not started. Empty if one is unknown.
  std::optional<double> waiting_seconds() const;

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
