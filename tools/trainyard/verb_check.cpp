// trainyard check: the whole experiment file, without running anything and without data.
#include <iostream>

#include <CLI/CLI.hpp>

#include "tools/trainyard/command.h"
#include "tools/trainyard/experiment_options.h"

namespace trainyard::tools {
namespace {

int check(const ExperimentOptions& options) {
  const auto experiment = checked_experiment(options);
  if (!experiment) return wrong_usage;
  std::cout << options.file.string() << ": ok, " << experiment->runs.size() << " runs\n";
  return done;
}

}  // namespace

void add_check(CLI::App& program, Invocation& invocation) {
  auto* command =
      program.add_subcommand("check", "check an experiment file, every line of it, and run nothing");
  auto options = std::make_shared<ExperimentOptions>();
  add_experiment_options(*command, *options);
  command->callback([options, &invocation] { invocation.action = [options] { return check(*options); }; });
}

}  // namespace trainyard::tools
