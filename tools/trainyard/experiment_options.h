// What `check`, `plan` and `run` share: the experiment file with its options, and the steps from file to
// plan.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/file.h"
#include "orchestrator/plan.h"
#include "orchestrator/programs.h"
#include "orchestrator/yard.h"

namespace CLI {
class App;
}

namespace trainyard::tools {

struct ExperimentOptions {
  std::filesystem::path file;
  experiments::Selection selection;
  std::optional<std::filesystem::path> data;
  std::optional<std::filesystem::path> yard;
  orchestrator::PlanOptions plan;
};

// FILE, --set, --where, --exclude-where.
void add_experiment_options(CLI::App& command, ExperimentOptions& options);
// --order, --reuse.
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

// Finds programs, cores and devices; prints warnings about the experiment's fit to them.
Machine machine_for(const experiments::Experiment& experiment);

// The plan as a table with its totals.
std::string plan_text(const experiments::Experiment& experiment, const orchestrator::Plan& plan,
                      const orchestrator::Yard& yard);

}  // namespace trainyard::tools
