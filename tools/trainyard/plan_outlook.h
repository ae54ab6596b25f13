// What the seeds of an experiment can resolve, cell by cell: the second half of `trainyard plan`.
#pragma once

#include <string>
#include <vector>

#include "experiments/file.h"

namespace trainyard::tools {

// A table a comparison, empty where the file compares nothing.
std::string outlook_text(const experiments::Experiment& experiment);

// Where NO CHANGE cannot be reached or is unlikely, and where nothing can be tested. Reads the data of models
// that classify, to count validation samples: `resolve_data` comes first.
std::vector<std::string> outlook_warnings(const experiments::Experiment& experiment);

}  // namespace trainyard::tools
