// Experiments named instead of their file: `run first` uses the file and options of `first` in the journal.
// Used by `resume` and `run`.
#pragma once

#include <string>

#include "db/queries/queries.h"
#include "tools/trainyard/cli/sweep_options.h"

namespace trainyard::tools {

// File and options of the last `run` of an experiment. Data sets and programs are searched for in the folder of the
// file. Print a note if the file has changed since. `again`: the command that uses the new file.
ExperimentOptions journalled_experiment(const db::Database& database, const std::string& name,
                                        const char* again);

// If `options.file` is not a file but names an experiment, take file, text and options from the journal.
// Options that are given now replace the recorded ones. UserError if the yard has other experiments only.
void complete_from_journal(ExperimentOptions& options);

}  // namespace trainyard::tools
