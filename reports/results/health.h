// Training that did not train: it stays at chance (loss at the logarithm of the number of classes, accuracy
// at one over it), is constant from epoch to epoch, or diverges. A verdict between two such arms says
// nothing.
#pragma once

#include <string>
#include <vector>

#include "reports/results/report_data.h"

namespace trainyard::reports {

// One line for each model, strategy and symptom: "CNN ddp: 5 of 5 runs stay at chance …".
std::vector<std::string> training_symptoms(const ReportData& data);

}  // namespace trainyard::reports
