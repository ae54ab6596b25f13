// Display of a sweep: the interface between supervision and the user. The sweep calls it from its only
// thread. `plain_status` prints one line per ended run. A terminal has its own, in tools.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "experiments/protocol/end_reason.h"
#include "experiments/protocol/progress.h"
#include "orchestrator/plan/plan.h"

namespace trainyard::orchestrator {

struct RunOutcome {
  experiments::EndReason reason = experiments::EndReason::finished;
  double seconds = 0;
  std::optional<double> test_accuracy;  // on the test set; empty if not measured
  std::optional<double> test_loss;
  std::string first_error;              // of the failing rank
  std::string log;                      // its log file
  std::optional<double> retry_seconds;  // until the retry; empty: no retry
};

class Status {
 public:
  virtual ~Status() = default;
  virtual void sweep_started(const Plan& plan) = 0;
  virtual void run_started(const PlannedRun& run, int attempt) = 0;
  virtual void run_progress(const PlannedRun& run,
                            const experiments::Progress& progress) = 0;  // at most 5 per second
  virtual void run_ended(const PlannedRun& run, const RunOutcome& outcome) = 0;
  virtual void message(const std::string& text) = 0;
  virtual void sweep_ended() = 0;
};

std::unique_ptr<Status> plain_status(std::ostream& out);

// Texts that both kinds of status print.

std::string clock_text(double seconds);     // "0:03", "12:34", "1:02:03"
std::string duration_text(double seconds);  // "4.2 s", "3 min 20 s", "2 h 5 min"
std::string percent_text(double fraction);  // "87.1 %"

// "20 runs: 3 finished before, 2 not selected, 15 to run, about 2 min".
std::string plan_text(const Plan& plan);

// Text after a run's label: "finished in 4.2 s, test accuracy 93.1 %", "failed after 2.1 s: …".
std::string outcome_text(const RunOutcome& outcome);

}  // namespace trainyard::orchestrator
