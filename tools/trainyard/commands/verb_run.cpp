// trainyard run: train what is left of an experiment, watch it, keep everything, make the report.
#include <CLI/CLI.hpp>

#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/experiment_options.h"
#include "tools/trainyard/cli/named_experiment.h"
#include "tools/trainyard/cli/run_experiment.h"
#include "tools/trainyard/commands/commands.h"
#include "tools/trainyard/commands/plan_experiment.h"

namespace trainyard::tools {
namespace {

struct RunOptions : ExperimentOptions {
  SweepChoices choices;
  bool dry_run = false;
};

int run(RunOptions options) {
  options.plan = options.choices.plan;
  const std::string named = options.file.string();
  complete_from_journal(options);
  if (options.dry_run) return plan_experiment(options);
  auto experiment = checked_experiment(options);
  if (!experiment) return wrong_usage;
  return run_experiment(
      {std::move(*experiment), options.selection, options.data, options.yard, "trainyard run " + named},
      options.choices);
}

}  // namespace

void add_run(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand("run", "train what is left of an experiment, then make its report");
  auto options = std::make_shared<RunOptions>();
  add_experiment_options(*command, *options);
  accept_name(*command);
  add_place_options(*command, *options);
  add_sweep_options(*command, options->choices);
  command->add_flag("--dry-run", options->dry_run, "the same as `trainyard plan`");
  command->callback([options, &invocation] { invocation.action = [options] { return run(*options); }; });
}

}  // namespace trainyard::tools
