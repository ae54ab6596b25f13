// What the seeds of an experiment can resolve, cell by cell: the second half of `trainyard plan`.
#pragma once

#include <string>
#include <vector>

#include "experiments/file/file.h"

namespace trainyard::tools {

struct PlanOutlook {
  std::string text;  // a table a comparison, empty where the file compares nothing
  // Where NO CHANGE cannot be reached or is unlikely, and where nothing can be tested.
  std::vector<std::string> warnings;
};

// Reads the data of models that classify, to count validation samples: `resolve_data` comes first.
PlanOutlook plan_outlook(const experiments::Experiment& experiment);

}  // namespace trainyard::tools
