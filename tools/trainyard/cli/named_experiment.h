// An experiment that is named, not its file: `run first` takes what the journal has of `first`. Used by the
// verbs that take a file or a name, and by `resume`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "db/queries/queries.h"
#include "experiments/file/file.h"
#include "tools/trainyard/cli/experiment_options.h"

namespace CLI {
class App;
}

namespace trainyard::tools {

// What the last `run` of an experiment was asked for.
struct JournalledExperiment {
  std::string name;
  std::string toml;
  std::filesystem::path file;  // where it lay: data sets and programs are searched for beside it
  experiments::Selection selection;
  std::optional<std::filesystem::path> data;
};

// Prints a note if the file has changed since. `again` says what takes the new one.
JournalledExperiment journalled_experiment(const db::Database& database, const std::string& name,
                                           const char* again);

// The help of FILE says that a name is accepted too.
void accept_name(CLI::App& command);

// If `options.file` is not a file but an experiment of the yard: takes its text, file and options from the
// journal. An option that is given now replaces the same one of then. UserError: the yard has experiments,
// but none of this name.
void complete_from_journal(ExperimentOptions& options);

}  // namespace trainyard::tools
