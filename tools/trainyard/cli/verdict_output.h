// Verdicts as a table for people and papers and as data for programs: what `trainyard compare` prints.
// docs/comparing.md describes the JSON.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/verdicts/verdict_records.h"

namespace trainyard::tools {

struct Compared {
  std::string experiment;
  std::vector<reports::Comparison> comparisons;
  std::vector<reports::VerdictRecord> records;  // of all comparisons, in their order
  bool planned = true;                          // false: groups that the experiment's file does not compare
  std::size_t width = 0;                        // columns of the terminal; 0: a file or a pipe
};

struct VerdictFormat {
  std::string name;
  std::string (*text)(const Compared&);
};
std::span<const VerdictFormat> verdict_formats();  // table, json, markdown, latex, csv

}  // namespace trainyard::tools
