// Verdicts as a table for people and papers and as data for programs: what `trainyard compare` prints.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/verdict_records.h"

namespace trainyard::tools {

struct VerdictFormat {
  std::string name;
  std::string (*text)(const std::vector<reports::VerdictRecord>&);
};
std::span<const VerdictFormat> verdict_formats();  // table, json, markdown, latex, csv

}  // namespace trainyard::tools
