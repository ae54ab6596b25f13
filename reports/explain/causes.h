// Causes of another result or of slower steps, by rules over the facts of the runs (docs/explain.md, which says how
// often they are right, and which thresholds were changed when).
//
// Most rules look inside the arm: from the loss to the gradient of a rank, to the gradient at the optimizer. These hold on
// any data. Two healthy arms that draw other batches and masks have first gradients that are far apart.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/explain/facts.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

// The facts of a run of the arm and of its partner.
struct ExplainedPair {
  const Facts& baseline;
  const Facts& arm;
  std::string name;       // of the baseline: "single"
  std::size_t pairs = 1;  // of the arm
};

struct Finding {
  std::string evidence;
  std::string advice;  // what the user can type or change
};

struct Rule {
  const char* name;  // of the cause: "batch"
  bool of_times;     // else of the result
  std::optional<Finding> (*find)(const ExplainedPair& pair);
  bool is_last = false;  // if it holds, rules after it are not asked
};

inline constexpr const char* even_means_advice =
    "divide the loss sum of a rank by the samples or tokens of all ranks, and multiply it by the number of "
    "ranks";

// In the order in which causes are named.
std::span<const Rule> result_rules();
std::span<const Rule> time_rules();

// The causes that hold in most pairs, those of the result first.
std::vector<Cause> causes_of(const ReportData& data, const experiments::Compare& compare,
                             const ArmRuns& baseline, const ArmRuns& arm);

// Seconds of the parts of an epoch, by the key of a run.
using SecondsByRun = std::map<std::string, const std::map<std::string, double>*>;
SecondsByRun seconds_by_run(const ReportData& data);

// By how much each part of an epoch is longer than in the baseline, as a share of the baseline's epoch. Over pairs whose
// times count. The sum is the change of the mean. No parts if no pair has them.
void add_part_changes(const SecondsByRun& seconds, const experiments::Compare& compare, const CellRuns& runs,
                      Cell& cell);

}  // namespace trainyard::reports
