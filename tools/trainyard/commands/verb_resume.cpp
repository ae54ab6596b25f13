// trainyard resume: go on with an experiment of this yard as it was asked for, without its file.
#include <CLI/CLI.hpp>

#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/named_experiment.h"
#include "tools/trainyard/cli/open_yard.h"
#include "tools/trainyard/cli/run_experiment.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

namespace fs = std::filesystem;

struct ResumeOptions {
  std::string experiment;
  std::optional<fs::path> yard;
  SweepChoices choices;
};

int resume(const ResumeOptions& options) {
  ExperimentOptions experiment;
  std::string name;
  {
    const auto database = open_yard(options.yard);
    name = experiment_named(database, options.experiment);
    const auto journalled = journalled_experiment(database, name, "`trainyard run`");
    experiment.file = journalled.file;
    experiment.toml = journalled.toml;
    experiment.selection = journalled.selection;
    experiment.data = journalled.data;
  }
  auto checked = checked_experiment(experiment);
  if (!checked) return wrong_usage;
  return run_experiment(
      {std::move(*checked), experiment.selection, experiment.data, options.yard, "trainyard resume " + name},
      options.choices);
}

}  // namespace

void add_resume(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand(
      "resume", "continue an experiment of this yard with the file and options of its last `run`");
  auto options = std::make_shared<ResumeOptions>();
  command->add_option("EXPERIMENT", options->experiment, "its name (default: the one run last)");
  add_sweep_options(*command, options->choices);
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return resume(*options); }; });
}

}  // namespace trainyard::tools
