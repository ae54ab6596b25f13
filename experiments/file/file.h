// Reader of the experiment file: TOML → validate → expand → complete runs. The whole file is checked before
// anything runs. Each problem has file:line:column, what is wrong and what is allowed.
// - `load` needs only the file (`trainyard check --file-only`).
// - `resolve_data` finds and hashes the data of each run (`check`, `plan`, `run`). Then each run has its key.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "experiments/design/experiment.h"

namespace trainyard::experiments {

// Changes from the command line, as texts of these forms:
// - `--set epochs=1`: set before expansion; overrides every table.
// - `--where model=mlp`: keep runs with this value. All names must match; several values of one name are
//   alternatives.
// - `--exclude-where model=mlp,seed=3`: remove runs that have all these values. Each option removes more.
// - `--as NAME`: call the experiment NAME. If `--set` makes runs that the file does not have, and no name is
//   given, the experiment is called "first-try": a quick try must not mix with the runs of the file.
struct Selection {
  std::vector<std::string> set;
  std::vector<std::string> where;
  std::vector<std::string> exclude_where = {};
  std::string as = {};  // --as: the experiment's name, instead of that of the file
  int max_seeds = 0;    // --max-seeds: as seed = { max }; 0: the seeds of the file
};

struct Loaded {
  std::optional<Experiment> experiment;  // empty if any problem is an error
  std::vector<Problem> problems;         // errors and warnings in the order of the file
  bool is_try = false;                   // its name ends in "-try", because `--set` changed runs
};

Loaded load(const std::filesystem::path& file, const Selection& selection = {});
Loaded load_text(const std::string& toml, const std::filesystem::path& name, const Selection& selection = {});

// The folder of the data sets: `from_command_line` (--data), else TRAINYARD_DATA.
std::optional<std::filesystem::path> data_search(
    const std::optional<std::filesystem::path>& from_command_line);

// Fills `data` of every run: source, folder, fingerprint. Hashes each data set once, or takes what is kept where
// `decoding` says. `directory` comes first and overrides `[data]`. UserError if
// - a data set is not found and is not "synthetic" (names the folders that were searched),
// - two runs have the same key (names both), or
// - a run has fewer training samples than replicas.
void resolve_data(Experiment& experiment, const std::optional<std::filesystem::path>& directory,
                  const models::Decoding& decoding = {});

// The file that `trainyard new` writes. It has comments, is complete, and runs on generated data. Characters
// that an experiment name must not have become "-".
std::string template_file(const std::string& name);

}  // namespace trainyard::experiments
