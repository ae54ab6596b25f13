// Foreign arms: strategies whose ranks are a program of the user's. `[strategy.NAME] command = […]` is its
// command line, argument by argument and never a shell's; `{learning_rate}` in an argument stands for the
// run's value of that name, `{{` for a brace. `files` are hashed into the run's key; `env` sets variables for
// the ranks, with the same placeholders.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/diagnostics.h"
#include "experiments/config/toml_tree.h"
#include "experiments/design/experiment.h"

namespace trainyard::experiments {

// What a table says; places for later problems.
struct ForeignTable {
  std::vector<std::string> command;
  std::vector<std::string> files;
  std::map<std::string, std::string> environment;
  Location at;
};

// Takes `command`, `files` and `env` out of the members of `where`; nothing where there is no command.
// Reports what is wrong with them.
std::optional<ForeignTable> read_foreign(const TomlNode::Table& table, const std::string& where,
                                         Diagnostics& problems);

// Puts the run's values into its command and its variables. A name that the run has no value of is reported.
void fill_command(const ForeignTable& foreign, Run& run, Diagnostics& problems);

// Hashes the declared files of all runs, beside the experiment's file, with those that patterns and folders
// find (experiments/config/found_files.h). UserError names one that cannot be read.
void resolve_files(Experiment& experiment);

}  // namespace trainyard::experiments
