// The experiment file: TOML → validate → expand → complete runs. The whole file is checked before anything
// runs; every problem carries file:line:column, what is wrong and what is allowed.
//
// Two steps: `load` needs nothing but the file (`trainyard check --file-only`); `resolve_data` finds, hashes
// and fills in the data each run reads (`check`, `plan` and `run`), after which each run has its key.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "experiments/design/experiment.h"

namespace trainyard::experiments {

// Changes from the command line: `--set epochs=1` (before expansion, over every table), `--where model=mlp`
// (keeps runs whose value, as text, is equal; several names must all hold, several values of one name are
// alternatives), `--exclude-where model=mlp,seed=3` (leaves out runs that have all of these; each further one
// leaves out others).
struct Selection {
  std::vector<std::string> set;
  std::vector<std::string> where;
  std::vector<std::string> exclude_where = {};
};

struct Loaded {
  std::optional<Experiment> experiment;  // empty where any problem is an error
  std::vector<Problem> problems;         // in the file's order, warnings too
};

Loaded load(const std::filesystem::path& file, const Selection& selection = {});
Loaded load_text(const std::string& toml, const std::filesystem::path& name, const Selection& selection = {});

// Where data is looked for: `directory` (--data, else TRAINYARD_DATA) first, overriding `[data]`.
struct DataSearch {
  std::optional<std::filesystem::path> directory;
};
DataSearch data_search(
    const std::optional<std::filesystem::path>& from_command_line);  // reads TRAINYARD_DATA

// Fills `data` of every run: source, folder, fingerprint. A data set that has neither a folder nor
// "synthetic" is a UserError that names it and all places looked in. Each data set is hashed once. Throws
// UserError for two runs with the same key, with both labels, and for a run with fewer training samples than
// replicas.
void resolve_data(Experiment& experiment, const DataSearch& search);

// The file that `trainyard new` writes: commented, complete, and runnable as it is on generated data.

// What a name of an experiment may not hold becomes "-".
std::string template_file(const std::string& name);

}  // namespace trainyard::experiments
