// Options of the subcommands that read an experiment file: its place, its selection, and how to train it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/log.h"
#include "experiments/file/file.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/sweep/sweep.h"

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

// Options of a sweep, shared by `run` and `resume`.
struct SweepChoices {
  orchestrator::PlanOptions plan;
  orchestrator::SweepOptions sweep;
  bool no_report = false;
  bool no_wait = false;
  std::optional<log::Level> log_level;  // without it TRAINYARD_LOG
};

// All options of SweepChoices, from --order to --verbose.
void add_sweep_options(CLI::App& command, SweepChoices& choices);

}  // namespace trainyard::tools
