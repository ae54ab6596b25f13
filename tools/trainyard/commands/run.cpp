// trainyard run | resume: trains the pending runs of an experiment and writes its report. `resume`, and `run` with
// the name of an experiment, use the file and options in the journal.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/named_row.h"
#include "db/queries/queries.h"
#include "experiments/file/file.h"
#include "experiments/run/strategies.h"
#include "models/datasets/datasets.h"
#include "orchestrator/yard/yard.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/recorded_runs.h"
#include "tools/trainyard/cli/run_sweep.h"
#include "tools/trainyard/commands/commands.h"
#include "tools/trainyard/commands/export_model.h"

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
  if (options.selection.max_seeds == 0) options.selection.max_seeds = journalled.selection.max_seeds;
  if (!options.data) options.data = journalled.data;
}

struct RunOptions : ExperimentOptions {
  SweepChoices choices;
  bool dry_run = false;
  // of a Python function or script
  ExportedExperiment exported;
  ScriptExperiment script;
  std::string python;
  std::vector<CLI::Option*> of_function, of_script, of_both;
};

// Exports the network of a Python function, and writes its experiment file, both into the current folder. Returns the exit
// code of the export.
int write_experiment(RunOptions& options) {
  const std::string function = options.file.string();
  const fs::path stem = fs::path(function.substr(0, function.rfind(':'))).stem();
  ModelExportOptions exported;
  exported.function = function;
  exported.out = stem.string() + ".pt2";
  exported.seeds = options.exported.seeds;
  exported.python = options.python;
  if (const int code = export_network(exported); code != done) return code;
  options.exported.network = *exported.out;
  options.exported.per_seed = true;
  options.file = stem.string() + ".toml";
  write_new_file(options.file, text_of(options.exported));
  return done;
}

// The same for a script.
void write_script_experiment(RunOptions& options) {
  if (!fs::is_regular_file(options.file)) throw UserError("there is no script " + options.file.string());
  ScriptExperiment& script = options.script;
  script.script = options.file.string();
  script.seeds = options.exported.seeds;
  if (!options.python.empty()) script.python = options.python;
  if (options.of_both.front()->count() > 0) script.strategies = options.exported.strategies;
  const std::string text = text_of(script);
  const auto loaded = experiments::load_text(text, options.file.stem().string() + ".toml");
  if (!loaded.experiment)
    throw UserError("no experiment file can be made of these options: " + to_text(loaded.problems.at(0)));
  options.file = options.file.stem().string() + ".toml";
  write_new_file(options.file, text);
}

void refuse(const std::vector<CLI::Option*>& these, const RunOptions& options, const char* of) {
  for (const CLI::Option* option : these)
    if (option->count() > 0)
      throw UserError(
          fmt::format("{} is for {}, but {} is none", option->get_name(), of, options.file.string()),
          "leave it out, or write the value in the experiment file");
}

int run(RunOptions options) {
  options.plan = options.choices.plan;
  const bool is_script = options.file.extension() == ".py",
             is_python = names_python_file(options.file.string());
  if (!is_python) refuse(options.of_both, options, "a Python function or script");
  if (!is_script) refuse(options.of_script, options, "a Python script");
  if (is_script || !is_python) refuse(options.of_function, options, "a Python function");
  if (is_script) {
    write_script_experiment(options);
  } else if (is_python) {
    if (const int code = write_experiment(options); code != done) return code;
  }
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

void add_python_options(CLI::App& command, RunOptions& options) {
  options.of_both = {
      command
          .add_option("--strategies", options.exported.strategies,
                      "of a Python function or script: the strategies to compare, of `trainyard list "
                      "strategies`; of a script "
                      "single and ddp")
          ->type_name("NAME ...")
          ->check(one_of(names_of(experiments::strategy_kinds(), &experiments::StrategyKind::name))
                      .description(""))
          ->capture_default_str(),
      command
          .add_option("--seeds", options.exported.seeds,
                      "of a Python function or script: seeds of each strategy")
          ->type_name("N")
          ->check(CLI::Range(1, 1000))
          ->capture_default_str(),
      refuse_empty(
          command
              .add_option("--python", options.python,
                          "of a Python function or script: a Python that has torch (default: python3, or "
                          "that of the build)")
              ->type_name("PROGRAM"))};
  options.of_script = {
      command.add_option("--replicas", options.script.replicas, "of a Python script: the processes of ddp")
          ->type_name("N")
          ->check(CLI::Range(2, 1024))
          ->capture_default_str(),
      command.add_option("--epochs", options.script.epochs, "of a Python script: the epochs of run.epochs()")
          ->type_name("N")
          ->check(CLI::Range(1, 100000))
          ->capture_default_str(),
      command
          .add_option("ARGUMENT", options.script.arguments,
                      "of a Python script: its arguments, after `--`; {seed} becomes the seed")
          ->type_name("")};
  options.of_function = {
      command
          .add_option("--dataset", options.exported.dataset,
                      "of a Python function: the data set, of `trainyard list datasets` (default: by the "
                      "sizes of its example)")
          ->type_name("NAME")
          ->check(one_of(models::dataset_names()).description(""))};
}

}  // namespace

void write_new_file(const fs::path& file, const std::string& text) {
  if (fs::exists(file) && whole_file(file) != text)
    throw UserError(file.string() + " exists, and is another experiment",
                    "run it with `trainyard run " + file.string() + "`, or remove it");
  write_whole_file(fs::absolute(file), text);
  std::cout << "wrote " << file.string() << "\n";
}

ExperimentOptions journalled_experiment(const db::Database& database, const std::string& name,
                                        const char* again) {
  const db::Plan plan = db::latest_plan(database, name);
  const auto asked = plan.asked.is_object() ? plan.asked : nlohmann::json::object();
  if (asked.contains(recorded_mark))
    throw UserError(
        "experiment \"" + name + "\" has runs of scripts that were recorded without trainyard run",
        "run the scripts again, or write an experiment file with `trainyard run FILE.py`");
  const std::vector<std::string> none;
  ExperimentOptions found;
  found.toml = plan.toml;
  found.file = plan.file;
  if (asked.contains("folder")) found.file = asked.at("folder").get<std::string>() / found.file.filename();
  found.selection = {asked.value("set", none), asked.value("where", none), asked.value("exclude_where", none),
                     asked.value("as", std::string()), asked.value("max_seeds", 0)};
  if (asked.contains("data")) found.data = asked.at("data").get<std::string>();
  note_change(found, again);
  return found;
}

void add_run(CLI::App& program, Invocation& invocation) {
  const auto [command, options] = add_verb(
      program, invocation, "run", "train the pending runs of an experiment, then write its report", run);
  add_experiment_options(*command, *options);
  command->get_option("FILE")->description(
      "experiment file (TOML), or the name of an experiment to use the file and options of its last run, "
      "or FILE.py:FUNCTION: export this network, write its experiment file, and run it, or FILE.py: do this "
      "with "
      "a script that `import trainyard` records");
  add_place_options(*command, *options);
  add_sweep_options(*command, options->choices);
  command->add_flag("--dry-run", options->dry_run, "the same as `trainyard plan`");
  add_python_options(*command, *options);
}

void add_resume(CLI::App& program, Invocation& invocation) {
  const auto [command, options] =
      add_verb(program, invocation, "resume", "continue an experiment as its last `run` began it", resume);
  command->add_option("EXPERIMENT", options->experiment, "its name (default: the one run last)");
  add_sweep_options(*command, options->choices);
  add_yard_option(*command, options->yard);
}

}  // namespace trainyard::tools
