// trainyard new: a commented experiment file that runs.
#include <filesystem>
#include <iostream>
#include <system_error>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/shell_quoted.h"
#include "base/whole_file.h"
#include "experiments/file/template.h"
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
    throw UserError(options.file.string() + " is there already",
                    "give another name, or --force to replace it");
  if (replaces && !std::filesystem::is_regular_file(options.file))
    throw UserError(options.file.string() + " is no plain file", "give another name");
  try {  // whole or not at all: an older file stays where the disk is full
    orchestrator::write_whole_file(
        replaces ? std::filesystem::canonical(options.file) : std::filesystem::absolute(options.file),
        experiments::template_file(options.file.stem().string()));
  } catch (const std::system_error& error) {
    throw UserError(options.file.string() + " cannot be written: " + error.code().message(),
                    "is the folder there and writable, is the disk full?");
  }
  std::cout << "wrote " << options.file.string() << "; run it with: trainyard run "
            << orchestrator::shell_quoted(options.file.string()) << '\n';
  return done;
}

}  // namespace

void add_new(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand("new", "write a commented experiment file that runs");
  auto options = std::make_shared<NewOptions>();
  refuse_empty(command->add_option("FILE", options->file, "file to write")->capture_default_str());
  command->add_flag("--force", options->force, "replace the file where it exists");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return write_new(*options); }; });
}

}  // namespace trainyard::tools
