// Provenance of a report: runs, data, machines and programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/results/report_data.h"

namespace trainyard::reports {

// Names and values in the order of the page, without unknown values.
std::vector<std::pair<std::string, std::string>> provenance(const ReportData& data);

}  // namespace trainyard::reports
