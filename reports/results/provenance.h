// Where the numbers of a report come from: runs, data, machines and programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/results/report_data.h"

namespace trainyard::reports {

// Name and value, in the order of the page; without those of which nothing is known.
std::vector<std::pair<std::string, std::string>> provenance(const ReportData& data);

}  // namespace trainyard::reports
