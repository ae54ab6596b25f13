// Checks of finished runs: whether they learned, and whether they reached what the file expects.
//
// Training that did not train: it stays at chance (loss at the logarithm of the number of classes, accuracy
// at one over it), is constant from epoch to epoch, or diverges. A verdict between two such arms says
// nothing.
#pragma once

#include <string>
#include <vector>

#include "experiments/design/experiment.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

// One line for each model, strategy and symptom: "CNN ddp: 5 of 5 runs stay at chance …".
std::vector<std::string> training_symptoms(const ReportData& data);

// What the experiment's file expects of its models ([expect.MODEL]), held against the runs of the latest plan
// that have finished. Thresholds come from the journal, numbers from `task_final_metrics`: a report that is
// made again says the same.

struct CheckedExpectation {
  experiments::Expectation expectation;
  std::vector<double> values;  // of the finished runs, in the metric's unit in the file; NaN: not defined
  std::vector<std::string> missed;  // one line a run that is not as expected
  bool holds() const { return missed.empty(); }
};

// "✓ all as expected", "✗ missed by 1 of 5", "no finished run".
std::string outcome_of(const CheckedExpectation& checked);

// In the order of the file. InternalError for a metric that no run can have.
std::vector<CheckedExpectation> check_expectations(const ReportData& data);

}  // namespace trainyard::reports
