// Which planned runs are still needed, if cells get seeds until they are decided.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "reports/results/report_data.h"

namespace trainyard::reports {

struct NeededRuns {
  // By run key: smaller numbers first. Runs up to the first look have 0, and keep their order. Then comes the next
  // pair of the cell that is nearest to a decision, of the second nearest, and so on, then the pairs after these.
  std::map<std::string, std::size_t> order;
  std::set<std::string> unneeded;    // planned, without a result, and their arms need no more pairs
  std::set<std::string> lack_times;  // finished beside other runs, but an arm needs their times now
  std::set<std::string> untimed;     // of `order`: their arms need no more times, only losses and accuracies
  std::size_t cells = 0;             // cells and arms whose seeds are a range
  std::size_t settled = 0;           // of these: decided, or no further pair would decide
};

// - An arm is settled if each published metric is decided or cannot be decided by further pairs. Failed runs of an arm
//   without all words are needed, also if it is settled.
// - The baseline is needed as long as one of its arms is, and `independent` runs as long as the baseline of their seed.
// - Runs of other comparisons, and runs without a partner, are neither in `order` nor unneeded.
NeededRuns needed_runs(const ReportData& data);

}  // namespace trainyard::reports
