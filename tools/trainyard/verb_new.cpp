// trainyard new: a commented experiment file that runs.
#include <filesystem>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "experiments/template.h"
#include "models/error.h"
#include "orchestrator/shell_quoted.h"
#include "tools/trainyard/command.h"

namespace trainyard::tools {
namespace {

struct NewOptions {
  std::filesystem::path file = "experiment.toml";
  bool force = false;
};

int write_new(const NewOptions& options) {
  if (std::filesystem::exists(options.file) && !options.force)
    throw UserError(options.file.string() + " is there already",
                    "give another name, or --force to replace it");
  std::ofstream out(options.file);
  out << experiments::template_file(options.file.stem().string());
  out.close();
  if (!out)
    throw UserError(options.file.string() + " cannot be written", "is the folder there and writable?");
  std::cout << "wrote " << options.file.string() << "; run it with: trainyard run "
            << orchestrator::shell_quoted(options.file.string()) << '\n';
  return done;
}

}  // namespace

void add_new(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand("new", "write a commented experiment file that runs");
  auto options = std::make_shared<NewOptions>();
  command->add_option("FILE", options->file, "file to write")->capture_default_str();
  command->add_flag("--force", options->force, "replace the file where it exists");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return write_new(*options); }; });
}

}  // namespace trainyard::tools
