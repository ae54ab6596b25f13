// trainyard check: the whole experiment file, and whether this machine can train it, with the data and
// programs that it names; nothing runs.
#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/experiment_options.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

struct CheckOptions : ExperimentOptions {
  bool file_only = false;
};

// ", on cuda:0 (NVIDIA H200)"; empty where a launcher chooses.
std::string places(const experiments::Experiment& experiment, const Machine& machine) {
  if (!experiment.machine.on_this_host()) return "";
  std::vector<std::string> names;
  for (const auto& device : orchestrator::grouped(machine.devices, machine.devices.size()))
    names.push_back(device.gpu.empty() ? device.name : fmt::format("{} ({})", device.name, device.gpu));
  return fmt::format(", on {}", fmt::join(names, ", "));
}

int check(const CheckOptions& options) {
  auto experiment = checked_experiment(options);
  if (!experiment) return wrong_usage;
  std::string where;
  if (!options.file_only)
    where = places(*experiment, ready(*experiment, orchestrator::yard_from(options.yard), options.data));
  std::cout << options.file.string() << ": ok, " << models::counted(experiment->runs.size(), "run") << where
            << "\n";
  return done;
}

}  // namespace

void add_check(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand(
      "check",
      "check an experiment file: every line of it, its data and programs, and whether this\n"
      "machine can; run nothing");
  auto options = std::make_shared<CheckOptions>();
  add_experiment_options(*command, *options);
  add_place_options(*command, *options);
  command->add_flag("--file-only", options->file_only,
                    "the file alone: not its data and programs, and not this machine");
  command->callback([options, &invocation] { invocation.action = [options] { return check(*options); }; });
}

}  // namespace trainyard::tools
