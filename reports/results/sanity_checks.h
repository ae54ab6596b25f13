// Checks of finished runs: whether they learned, and whether they meet the expectations of the file.
//
// Symptoms of failed training: loss and accuracy stay at chance (ln of the number of classes, 1 / classes),
// the loss is constant, or it diverges. A verdict between two such arms means nothing.
#pragma once

#include <string>
#include <vector>

#include "experiments/design/experiment.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

// One line per symptom with its models and strategies: "CNN ddp: 5 of 5 runs are at chance: …".
std::vector<std::string> training_symptoms(const ReportData& data);

// An expectation of the experiment file ([expect.MODEL]), checked for the finished runs of the latest plan.
// Both come from the database (journal and `task_final_metrics`), so the same database gives the same report.
struct CheckedExpectation {
  std::string experiment;  // its name in a report of several; empty in a report of one
  experiments::Expectation expectation;
  std::vector<double> values;  // of the finished runs, in the metric's unit in the file; NaN: not defined
  std::vector<std::string> missed;  // one line per run that misses it
  bool holds() const { return missed.empty(); }
};

// "mlp: test_accuracy >= 0.9"; in a report of several experiments "first: mlp: test_accuracy >= 0.9".
std::string text_of(const CheckedExpectation& checked);

// "✓ all as expected", "✗ missed by 1 of 5", "no finished run".
std::string outcome_of(const CheckedExpectation& checked);

// All expectations in the order of the file, those of each experiment for its own runs. InternalError if the
// metric does not exist.
std::vector<CheckedExpectation> check_expectations(const ReportData& data);

}  // namespace trainyard::reports
