// trainyard run | resume: trains the pending runs of an experiment and writes its report. `resume`, and `run` with
// the name of an experiment, use the file and options in the journal.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/named_row.h"
#include "db/queries/queries.h"
#include "orchestrator/yard/yard.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/run_sweep.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

namespace {

namespace fs = std::filesystem;

void note_change(const ExperimentOptions& experiment, const char* again) {
  if (fs::exists(experiment.file) && whole_file(experiment.file) != experiment.toml)
    std::cerr << "note: " << experiment.file.string()
              << " has changed since the last run. This command uses the recorded file, " << again
              << " uses the new one\n";
}

// True for "first.toml" and "dir/first": these are files, even if an experiment has that name.
bool is_written_as_path(const fs::path& text) {
  return text.has_parent_path() || text.extension() == ".toml";
}

void prefer(std::vector<std::string>& given, std::vector<std::string>& before) {
  if (given.empty()) given = std::move(before);
}

// File and options of the last `run` of an experiment. Data sets and programs are searched for in the folder of the
// file. Print a note if the file has changed since. `again`: the command that uses the new file.
ExperimentOptions journalled_experiment(const db::Database& database, const std::string& name,
                                        const char* again) {
  const db::Plan plan = db::latest_plan(database, name);
  const auto asked = plan.asked.is_object() ? plan.asked : nlohmann::json::object();
  const std::vector<std::string> none;
  ExperimentOptions found;
  found.toml = plan.toml;
  found.file = plan.file;
  if (asked.contains("folder")) found.file = asked.at("folder").get<std::string>() / found.file.filename();
  found.selection = {asked.value("set", none), asked.value("where", none), asked.value("exclude_where", none),
                     asked.value("as", std::string())};
  if (asked.contains("data")) found.data = asked.at("data").get<std::string>();
  note_change(found, again);
  return found;
}

// If `options.file` is not a file but names an experiment, take file, text and options from the journal.
// Options that are given now replace the recorded ones. UserError if the yard has other experiments only.
void complete_from_journal(ExperimentOptions& options) {
  const std::string name = options.file.string();
  if (fs::exists(options.file) && !fs::is_directory(options.file)) return;
  if (!orchestrator::yard_from(options.yard).exists()) return;  // reading the file reports the error later
  const auto database = open_yard(options.yard);
  const auto names = db::experiment_names(database);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    if (is_written_as_path(options.file) || names.empty()) return;
    throw UserError("\"" + name + "\" is neither a file nor an experiment of this yard" +
                    name_advice(name, names));
  }
  auto journalled = journalled_experiment(database, name, "`trainyard run FILE`");
  options.file = journalled.file;
  options.toml = journalled.toml;
  prefer(options.selection.set, journalled.selection.set);
  prefer(options.selection.where, journalled.selection.where);
  prefer(options.selection.exclude_where, journalled.selection.exclude_where);
  if (options.selection.as.empty()) options.selection.as = journalled.selection.as;
  if (!options.data) options.data = journalled.data;
}

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
