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
  // After a lost rank of an elastic run: the replicas of the retry, and the device of the rank.
  std::optional<experiments::Membership> membership;
  std::string lost_device;  // empty: not known
};

class Status {
 public:
  virtual ~Status() = default;
  virtual void sweep_started(const Plan& plan) = 0;
  virtual void run_started(const PlannedRun& run, int attempt) = 0;
  virtual void run_progress(const PlannedRun& run,
                            const experiments::Progress& progress) = 0;  // at most 5 per second
  virtual void run_ended(const PlannedRun& run, const RunOutcome& outcome) = 0;
  virtual void not_needed(std::size_t runs) = 0;  // of those that wait: their cells are decided so far
  virtual void message(const std::string& text) = 0;
  virtual void sweep_ended() = 0;
};

std::unique_ptr<Status> plain_status(std::ostream& out);

// Texts that both kinds of status print.

std::string percent_text(double fraction);  // "87.1 %"

// "15 to run, about 2 min". "At most" if runs can turn out not to be needed.
std::string waiting_text(const Plan& plan);

// "20 runs: 3 finished before, 2 not selected, 15 to run, about 2 min".
std::string plan_text(const Plan& plan);

// Text after a run's label: "finished in 4.2 s, test accuracy 93.1 %", "failed after 2.1 s: …".
std::string outcome_text(const RunOutcome& outcome);

}  // namespace trainyard::orchestrator
