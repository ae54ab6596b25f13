// trainyard run | resume: trains the pending runs of an experiment and writes its report.
#include <CLI/CLI.hpp>

#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/named_experiment.h"
#include "tools/trainyard/cli/run_sweep.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

namespace {

struct RunOptions : ExperimentOptions {
  SweepChoices choices;
  bool dry_run = false;
};

int run(RunOptions options) {
  options.plan = options.choices.plan;
  const std::string command = "trainyard run " + options.file.string();
  complete_from_journal(options);
  return options.dry_run ? plan_experiment(options) : run_sweep(options, options.choices, command);
}

}  // namespace

void add_run(CLI::App& program, Invocation& invocation) {
  auto* command =
      program.add_subcommand("run", "train the pending runs of an experiment, then write its report");
  auto options = std::make_shared<RunOptions>();
  add_experiment_options(*command, *options);
  command->get_option("FILE")->description(
      "experiment file (TOML), or the name of an experiment to use the file and options of its last run");
  add_place_options(*command, *options);
  add_sweep_options(*command, options->choices);
  command->add_flag("--dry-run", options->dry_run, "the same as `trainyard plan`");
  command->callback([options, &invocation] { invocation.action = [options] { return run(*options); }; });
}

// trainyard resume: continues an experiment with the file and options in the journal.

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
    experiment = journalled_experiment(database, name, "`trainyard run`");
  }
  experiment.yard = options.yard;
  return run_sweep(experiment, options.choices, "trainyard resume " + name);
}

}  // namespace

void add_resume(CLI::App& program, Invocation& invocation) {
  auto* command =
      program.add_subcommand("resume", "continue an experiment with the file and options of its last `run`");
  auto options = std::make_shared<ResumeOptions>();
  command->add_option("EXPERIMENT", options->experiment, "its name (default: the one run last)");
  add_sweep_options(*command, options->choices);
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return resume(*options); }; });
}

}  // namespace trainyard::tools
