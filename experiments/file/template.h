// The file that `trainyard new` writes: commented, complete, and runnable as it is on generated data.
#pragma once

#include <string>

namespace trainyard::experiments {

// What a name of an experiment may not hold becomes "-".
std::string template_file(const std::string& name);

}  // namespace trainyard::experiments
