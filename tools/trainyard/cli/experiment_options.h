// Shared parts of `check`, `plan`, `run` and `resume`: options, and the steps from file to report.
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
namespace trainyard::tools {

struct ExperimentOptions {
  std::filesystem::path file;
  std::optional<std::string> toml;  // text from the journal; without it the file is read
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

// Read and check the file, and print all problems to standard error. Empty if one of them is an error.
std::optional<experiments::Experiment> checked_experiment(const ExperimentOptions& options);

// The machine as planning needs it.
struct Machine {
  orchestrator::Programs programs;
  experiments::Circumstances circumstances;
  std::vector<orchestrator::Device> devices;
};

// All checks before training. `check`, `plan` and `run` share them, so that they always agree.
// - Checks the data, the files of the user's programs, our programs, the devices and the launcher.
// - Fills in the data and keys of all runs, and the defaults of [machine].
// - Prints warnings. UserError if a run cannot be trained.
Machine ready(experiments::Experiment& experiment, const orchestrator::Yard& yard,
              const std::optional<std::filesystem::path>& data);

// Why the times of finished runs do not count, and how to train them again. Empty if all count.
std::string times_offer(const orchestrator::Plan& plan);

// The plan as a table with its totals.
std::string plan_text(const experiments::Experiment& experiment, const orchestrator::Plan& plan,
                      const orchestrator::Yard& yard);

// Options of a sweep, shared by `run` and `resume`.
struct SweepChoices {
  orchestrator::PlanOptions plan;
  orchestrator::SweepOptions sweep;
  bool no_report = false;
  bool no_wait = false;
  std::optional<log::Level> log_level;  // without it TRAINYARD_LOG
  bool verbose = false;
};

// All options of SweepChoices, from --order to --verbose.
void add_sweep_options(CLI::App& command, SweepChoices& choices);

// A request to train: what, with which data, in which yard.
struct Asked {
  experiments::Experiment experiment;
  experiments::Selection selection;  // with which the experiment was loaded
  std::optional<std::filesystem::path> data;
  std::optional<std::filesystem::path> yard;
  std::string command;  // in the lock: "trainyard run first.toml"
};

// Train the pending runs, print progress and write the report. Returns an exit code.
int run_experiment(Asked asked, const SweepChoices& choices);

}  // namespace trainyard::tools
