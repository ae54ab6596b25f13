// What `check`, `plan` and `run` share: the experiment file with its options, and the steps from file to
// plan.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "experiments/file/file.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/resources/programs.h"
#include "orchestrator/sweep/sweep.h"
#include "orchestrator/yard/yard.h"

namespace CLI {
class App;
}
namespace CLI {
class App;
}
namespace trainyard::tools {

struct ExperimentOptions {
  std::filesystem::path file;
  std::optional<std::string> toml;  // as the journal has it; else the file is read
  experiments::Selection selection;
  std::optional<std::filesystem::path> data;
  std::optional<std::filesystem::path> yard;
  orchestrator::PlanOptions plan;
};

// FILE, --set, --where, --exclude-where.
void add_experiment_options(CLI::App& command, ExperimentOptions& options);
// --order, --reuse, --retrain-times.
void add_order_option(CLI::App& command, orchestrator::PlanOptions& options);
// --data, --yard.
void add_place_options(CLI::App& command, ExperimentOptions& options);

// Reads and checks the file; prints every problem to standard error. Empty where one of them is an error.
std::optional<experiments::Experiment> checked_experiment(const ExperimentOptions& options);

// All that planning needs of this machine.
struct Machine {
  orchestrator::Programs programs;
  experiments::Circumstances circumstances;
  std::vector<orchestrator::Device> devices;
};

// All that `check`, `plan` and `run` ask before anything is trained, so that none of them says yes where
// another says no: is the data there, and what the programs of the user's read; has this machine the
// programs, devices and launcher; do the runs fit them? Fills in the data and the keys of all runs, and what
// [machine] left open. Prints warnings; UserError if a run could not be trained.
Machine ready(experiments::Experiment& experiment, const orchestrator::Yard& yard,
              const std::optional<std::filesystem::path>& data);

// Why the times of finished runs do not count, and how they are trained again; empty if they do.
std::string times_offer(const orchestrator::Plan& plan);

// The plan as a table with its totals.
std::string plan_text(const experiments::Experiment& experiment, const orchestrator::Plan& plan,
                      const orchestrator::Yard& yard);

// What `run` and `resume` share: the options of a sweep, and all of its steps from a checked experiment to
// its report.

struct SweepChoices {
  orchestrator::PlanOptions plan;
  orchestrator::SweepOptions sweep;
  bool no_report = false;
  bool no_wait = false;
  std::optional<log::Level> log_level;  // else that of TRAINYARD_LOG
  bool verbose = false;
};

// --order, --reuse, --failed, --max-retries, --fail-fast, --max-failures, --no-wait, --no-report,
// --log-level,
// --verbose.
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
