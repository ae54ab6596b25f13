// Foreign strategies: their ranks run a program of the user. Keys of [strategy.NAME]:
// - `command`: the argument list, never passed to a shell. `{learning_rate}` is replaced by that value of the
//   run, and `{{` by a brace.
// - `files`: hashed into the run key.
// - `env`: environment variables of the ranks, with the same placeholders.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/config/diagnostics.h"
#include "experiments/design/experiment.h"

namespace trainyard::experiments {

// The foreign keys of a table, with a location for later errors.
struct ForeignTable {
  std::vector<std::string> command;
  std::vector<std::string> files;
  std::map<std::string, std::string> environment;
  Location at;
  Location files_at;  // of `files`
};

// Replaces the placeholders in the run's command and variables. Reports unknown names.
void fill_command(const ForeignTable& foreign, Run& run, Diagnostics& problems);

// Hashes the declared files of all runs, with those of patterns and folders (found_files.h).
// Paths are relative to the folder of the experiment file. UserError if a file cannot be read.
void resolve_files(Experiment& experiment);

// Warnings on foreign strategies, each once: `files` is missing, or lacks a file that the command names. A
// change of such a file would not make new runs. Call `resolve_files` first.
std::vector<std::string> unlisted_files(const Experiment& experiment);

}  // namespace trainyard::experiments
