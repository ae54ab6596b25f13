// A whole sweep for the terminal: from the file to the report.
#pragma once

#include <string>

#include "orchestrator/plan/plan.h"
#include "tools/trainyard/cli/sweep_options.h"

namespace trainyard::tools {

// Why the times of finished runs do not count, and how to train them again. Empty if all count.
std::string times_offer(const orchestrator::Plan& plan);

// Train the pending runs of the file, print progress and write the report. Returns an exit code.
// `command`: in the locks and logs, "trainyard run first.toml".
int run_sweep(const ExperimentOptions& options, const SweepChoices& choices, const std::string& command);

}  // namespace trainyard::tools
