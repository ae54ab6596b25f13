// An experiment file, checked together with its data, its programs and this machine.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "orchestrator/sweep/session.h"
#include "orchestrator/yard/yard.h"
#include "tools/trainyard/cli/sweep_options.h"

namespace trainyard::tools {

// Print the first 20 errors and the first 20 warnings to standard error, and the number of the others.
void print_problems(const std::vector<Problem>& problems);

// Read and check the file, and print all problems to standard error. Empty if one of them is an error.
std::optional<experiments::Experiment> checked_experiment(const ExperimentOptions& options);

// All checks before training. `check`, `plan` and `run` share them, so that they always agree.
// - Checks the data, the files of the user's programs, our programs, the devices and the launcher.
// - Fills in the data and keys of all runs, and the defaults of [machine].
// - Keeps decoded images in the yard. If there is none, only with `makes_yard`.
// - Prints warnings. UserError if a run cannot be trained.
orchestrator::Machine ready(experiments::Experiment& experiment, const orchestrator::Yard& yard,
                            bool makes_yard, const std::optional<std::filesystem::path>& data);

}  // namespace trainyard::tools
