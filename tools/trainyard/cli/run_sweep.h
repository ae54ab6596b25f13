// A whole sweep for the terminal: from the file to the report.
#pragma once

#include <functional>
#include <string>

#include "db/database/database.h"
#include "experiments/design/experiment.h"
#include "orchestrator/plan/plan.h"
#include "tools/trainyard/cli/sweep_options.h"

namespace trainyard::tools {

// Why the times of finished runs do not count, and how to train them again. Empty if all count.
std::string times_offer(const orchestrator::Plan& plan);

// Which runs are still needed, if the file gives cells seeds until they are decided; else null.
std::function<orchestrator::Needed(const db::Database&)> needed_in(const experiments::Experiment& experiment);

// Train the pending runs of the file, print progress and write the report. Returns an exit code.
// `command`: in the locks and logs, "trainyard run first.toml".
int run_sweep(const ExperimentOptions& options, const SweepChoices& choices, const std::string& command);

}  // namespace trainyard::tools
