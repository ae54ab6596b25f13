// The experiment file as written: each name and each value is checked, but nothing is combined yet.
// `config_sections.cpp` and `config_strategies.cpp` read the sections. `expand` makes runs of the result.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/parameter.h"
#include "experiments/config/config_strategies.h"
#include "experiments/config/declared.h"
#include "experiments/config/diagnostics.h"
#include "experiments/config/toml_tree.h"
#include "experiments/design/experiment.h"
#include "experiments/run/keys.h"
#include "experiments/run/machine.h"

namespace trainyard::experiments {

// A file with `count = 99999` would occupy a fuzzer for a minute.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
inline constexpr std::size_t max_runs = 1000;
#else
inline constexpr std::size_t max_runs = 100'000;
#endif

struct Setting {
  Value value;
  Location at;
};
using Settings = std::map<std::string, Setting>;  // by key

// One key of the matrix with its alternatives.
struct Axis {
  std::string name;
  Location at;
  std::vector<Setting> values;
};

// One factor of the product: a single axis, or the axes of a zip, which all have the same number of values.
using Dimension = std::vector<Axis>;

struct Matrix {
  bool given = false;
  bool broken = false;  // a part had an error and is missing
  Location at;
  std::vector<Dimension> dimensions;    // model, strategy, others in the order of the file, seed last
  std::optional<SeedRange> seeds = {};  // of seed = { min, max }
  const Axis* axis(const std::string& name) const;
};

// A row of [[exclude]] or [[include]]. Wrong values were reported and are not among its settings.
struct Row {
  Location at;
  Settings settings;
  std::vector<std::string> wrong;  // keys with a wrong value
  bool broken = false;             // true if anything in the row is wrong
};

// A [compare] table. The baseline is checked later, when the runs are known.
struct CompareTable {
  Compare compare;
  Location at;
  Location baseline_at;
  std::optional<Value> baseline;
};

// A line of [expect.*].
struct ExpectedLine {
  Expectation expectation;
  Location at;
};

struct ExperimentConfig {
  std::string name;
  Declared declared;
  std::uint64_t data_seed = 0;
  std::map<std::string, std::string> data;
  Machine machine;
  Matrix matrix;
  Settings defaults;
  std::map<std::string, Settings> models;
  std::map<std::string, Settings> strategies;    // by label
  std::map<std::string, std::string> own_kinds;  // by label, if the table has `kind`
  std::map<std::string, ForeignTable> foreign;   // by label, if the table has `command`
  std::vector<ExpectedLine> expect;
  std::vector<Row> exclude;
  std::vector<Row> include;
  Settings overrides;  // from --set; they override all tables
  std::vector<CompareTable> compare;
  bool compare_given = false;
  std::string published;  // file of published numbers, or empty
  Location published_at;
};

// Rule for the name of an experiment, which is also the name of a folder and an argument of commands.
inline constexpr const char* name_rule =
    "1 to 80 characters of A-Z a-z 0-9 space _ . - and must not begin with space . -";
bool is_experiment_name(const std::string& name);
std::string experiment_name(std::string text);  // `text`, changed to be an allowed name

// Reads the whole tree. Errors are reported, and the wrong parts are left out.
ExperimentConfig read_config(const TomlNode& root, const std::string& file, Diagnostics& problems);

// Replaces the seeds by 0 … max − 1. Further seeds than the first four are trained until the cell is decided.
void use_seeds_until_decided(int max, Matrix& matrix);
inline constexpr int usual_min_seeds = 4;
inline constexpr int most_seeds = 1000;

// Sorts the model first, the strategy second and the seed last. Other dimensions keep their order.
void sort_dimensions(Matrix& matrix);

// Reports an axis that is a hyper-parameter of only some models of the matrix.
void check_hyperparameters(const Matrix& matrix, const Declared& declared, Diagnostics& problems);

// The kind of the strategy with this label: from its table, or the label itself. Null if it is unknown.
const StrategyKind* strategy_kind(const ExperimentConfig& config, const std::string& label);
std::vector<std::string> strategy_labels(const ExperimentConfig& config);

// Reports unknown strategy labels, and removes the axis values and rows that use them.
void check_strategies(ExperimentConfig& config, Diagnostics& problems);

// Readers of one section each.
void read_strategies(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems);
void read_expect(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems);
void read_compare(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems);
void read_machine(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems);
void read_data(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems);

// Reads the keys in `known` into `settings`. Reports others, with the section that they belong to. `models`: the
// models that the values are meant for.
void read_settings(const TomlNode::Table& table, const std::string& where,
                   const std::vector<std::string>& known, Settings& settings, const Declared& declared,
                   Diagnostics& problems, const std::vector<std::string>& models = {});

void report_no_model(const TomlMember& member, const Declared& declared, Diagnostics& problems);

// The text of `item` if it can be a path or an argument: not empty and without a zero byte. Else null.
const std::string* path_or_argument(const TomlNode& item);

// Names of the models in the matrix and in the [[include]] rows.
std::vector<std::string> used_models(const ExperimentConfig& config);

}  // namespace trainyard::experiments
