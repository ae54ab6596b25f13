// Checks of finished runs: whether they learned, and whether they meet the expectations of the file.
//
// Symptoms of failed training: loss and accuracy stay at chance (ln of the number of classes, 1 / classes),
// the loss is constant, or it diverges. A verdict between two such arms means nothing.
#pragma once

#include <string>
#include <vector>

#include "reports/document/report.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

// One line per symptom with its models and strategies: "CNN ddp: 5 of 5 runs are at chance: …".
std::vector<std::string> training_symptoms(const ReportData& data);

// All expectations in the order of the file, those of each experiment for its own runs. InternalError if the
// metric does not exist.
std::vector<CheckedExpectation> check_expectations(const ReportData& data);

}  // namespace trainyard::reports
