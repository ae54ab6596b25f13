// What `run` and `resume` share: the options of a sweep, and all of its steps from a checked experiment to
// its report.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "experiments/file/file.h"
#include "orchestrator/sweep/sweep.h"

namespace CLI {
class App;
}

namespace trainyard::tools {

struct SweepChoices {
  orchestrator::PlanOptions plan;
  orchestrator::SweepOptions sweep;
  bool failed_only = false;
  bool no_report = false;
  bool no_wait = false;
};

// --order, --reuse, --failed, --max-retries, --fail-fast, --max-failures, --no-wait, --no-report.
void add_sweep_options(CLI::App& command, SweepChoices& choices);

// What is asked, and where.
struct Asked {
  experiments::Experiment experiment;
  experiments::Selection selection;  // that the experiment was loaded with
  std::optional<std::filesystem::path> data;
  std::optional<std::filesystem::path> yard;
  std::string command;  // as the lock names it: "trainyard run first.toml"
};

// Trains what is left, prints what happens, makes the report. An exit code.
int run_experiment(Asked asked, const SweepChoices& choices);

}  // namespace trainyard::tools
