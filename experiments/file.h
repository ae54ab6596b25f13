// The experiment file: TOML → validate → expand → complete runs. The whole file is checked before anything
// runs; every problem carries file:line:column, what is wrong and what is allowed.
//
// Two steps: `load` needs nothing but the file (`trainyard check --file-only`); `resolve_data` finds, hashes
// and fills in the data each run reads (`check`, `plan` and `run`), after which each run has its key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/compare.h"
#include "experiments/expect.h"
#include "experiments/machine.h"
#include "experiments/published.h"
#include "experiments/run.h"
#include "models/error.h"

namespace trainyard::experiments {

// To a fuzzer `count = 99999` would be its only file of a minute.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
inline constexpr std::size_t max_runs = 1000;
#else
inline constexpr std::size_t max_runs = 100'000;
#endif
inline constexpr std::size_t max_file_bytes = 1 << 20;

struct Problem {
  Location location;
  std::string message;  // what is wrong and what is allowed
  bool warning = false;
};
std::string to_text(const Problem& problem);  // "file:line:column: error: message"

struct Experiment {
  std::string name;
  std::filesystem::path file;
  std::string toml;  // verbatim
  std::uint64_t data_seed = 0;
  std::map<std::string, std::string> data;  // data set -> folder or "synthetic", as `[data]` says
  Machine machine;
  std::vector<Compare> compare;     // empty where the file has none and strategies cannot be compared
  std::vector<Expectation> expect;  // what the end of `run` checks; by model and metric, in the file's order
  std::optional<Published> published;  // numbers to show beside ours; the file that `published` names
  std::vector<Run> runs;  // model, strategy, other axes as in the file, seed fastest; included rows last
  std::vector<std::string> keys;             // of each run; empty before `resolve_data`
  std::vector<std::string> varied;           // names of the axes that the matrix varies
  std::vector<Location> strategy_locations;  // of each run: where its strategy stands, for device errors
  std::vector<Location> thread_locations;    // of each run: where its `threads` stands
};

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

}  // namespace trainyard::experiments
