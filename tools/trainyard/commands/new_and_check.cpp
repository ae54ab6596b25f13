// trainyard new | check: writes an example experiment file with comments, or checks a file.
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/disk_failure.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "experiments/config/config_strategies.h"
#include "experiments/file/file.h"
#include "tools/trainyard/cli/checked_experiment.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

namespace {

struct NewOptions {
  std::filesystem::path file = "experiment.toml";
  bool force = false;
};

int write_new(const NewOptions& options) {
  const bool replaces = std::filesystem::exists(options.file);
  if (replaces && !options.force)
    throw UserError(options.file.string() + " already exists",
                    "choose another name, or replace it with --force");
  if (replaces && !std::filesystem::is_regular_file(options.file))
    throw UserError(options.file.string() + " is not a regular file", "choose another name");
  try {  // atomic: if the disk is full, the older file stays
    write_whole_file(
        replaces ? std::filesystem::canonical(options.file) : std::filesystem::absolute(options.file),
        experiments::template_file(options.file.stem().string()));
  } catch (const std::system_error& error) {
    throw_unwritten(options.file.string() + " cannot be written", "check the folder and the free disk space",
                    error.code().value());
  }
  std::cout << "wrote " << options.file.string() << "; run it with: trainyard run "
            << shell_quoted(options.file.string()) << '\n';
  return done;
}

}  // namespace

void add_new(CLI::App& program, Invocation& invocation) {
  const auto [command, options] =
      add_verb(program, invocation, "new", "write an example experiment file with comments", write_new);
  refuse_empty(command->add_option("FILE", options->file, "file to write")->capture_default_str());
  command->add_flag("--force", options->force, "replace the file if it exists");
}

// trainyard check: checks the experiment file, its data and programs, and this machine. Nothing is trained.

namespace {

struct CheckOptions : ExperimentOptions {
  bool file_only = false;
};

// ", on cuda:0 (NVIDIA H200)". Empty if the launcher chooses the devices.
std::string places(const experiments::Experiment& experiment, const orchestrator::Machine& machine) {
  if (!experiment.machine.on_this_host()) return "";
  std::vector<std::string> names;
  for (const auto& device : orchestrator::grouped(machine.devices, machine.devices.size()))
    names.push_back(device.gpu.empty() ? device.name : fmt::format("{} ({})", device.name, device.gpu));
  return fmt::format(", on {}", fmt::join(names, ", "));
}

// Compares each exported network with PyTorch, once per file. False if one differs.
bool networks_agree(const experiments::Experiment& experiment, const orchestrator::Programs& programs) {
  std::map<std::filesystem::path, std::string> files;  // to the name of the model
  for (const auto& run : experiment.runs)
    if (run.exported && !programs.runner.empty()) files.emplace(run.exported->path, run.model);
  bool agree = true;
  for (const auto& [file, model] : files) {
    const orchestrator::NetworkCheck found = orchestrator::check_network(programs, file);
    agree = agree && found.agrees;
    if (found.agrees)
      std::cout << fmt::format("model {}: {}\n", model, found.line);
    else
      std::cerr << fmt::format("trainyard: {}\n", found.line);
  }
  return agree;
}

int check_file(const CheckOptions& options) {
  auto experiment = checked_experiment(options);
  if (!experiment) return wrong_usage;
  std::string where;
  if (!options.file_only) {
    const orchestrator::Machine machine =
        ready(*experiment, orchestrator::yard_from(options.yard), /*makes_yard=*/false, options.data);
    if (!networks_agree(*experiment, machine.programs)) return wrong_usage;
    std::vector<Problem> warnings;
    for (const std::string& text : experiments::unlisted_files(*experiment))
      warnings.push_back({.location = {}, .message = text, .warning = true});
    print_problems(warnings);
    where = places(*experiment, machine);
  }
  std::cout << options.file.string() << ": ok, " << counted(experiment->runs.size(), "run") << where << "\n";
  return done;
}

}  // namespace

void add_check(CLI::App& program, Invocation& invocation) {
  const auto [command, options] =
      add_verb(program, invocation, "check",
               "check an experiment file, its data and this machine\n\n"
               "Checks every line, finds the data and the programs, and checks "
               "that this machine can run it. Warns if `files` of a program of yours "
               "is missing, or lacks a file that its `command` names. Compares one training "
               "step and one evaluation of each exported network with PyTorch. Nothing is trained.",
               check_file);
  add_experiment_options(*command, *options);
  add_place_options(*command, *options);
  command->add_flag("--file-only", options->file_only,
                    "check only the file, not its data, its programs or this machine");
}

}  // namespace trainyard::tools
