// The experiment file as it stands, checked name by name and value by value, before anything is combined:
// lists of alternatives, defaults, tables of models and strategies, rows to leave out and to add.
// `config_sections.cpp` and `config_strategies.cpp` read one section each; `expand` makes runs of it.
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

// To a fuzzer `count = 99999` would be its only file of a minute.
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

// Alternatives of one key.
struct Axis {
  std::string name;
  Location at;
  std::vector<Setting> values;
};

// What the product runs over: one axis, or the axes of a zip, which have equally many values.
using Dimension = std::vector<Axis>;

struct Matrix {
  bool given = false;
  bool broken = false;  // a part of it was wrong and is left out: what is made of it is not the whole
  Location at;
  std::vector<Dimension> dimensions;  // model, strategy, others in the file's order, seed last
  const Axis* axis(const std::string& name) const;
};

// A row of [[exclude]] or [[include]]. What is wrong in it has been reported and is not among its settings.
struct Row {
  Location at;
  Settings settings;
  std::vector<std::string> wrong;  // keys whose values are
  bool broken = false;             // anything is: it is not the row that was meant
};

// A [compare] table; the baseline is held against the runs when there are some.
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
  std::map<std::string, std::string> own_kinds;  // of the labels that say one
  std::map<std::string, ForeignTable> foreign;   // of the labels that have a command
  std::vector<ExpectedLine> expect;
  std::vector<Row> exclude;
  std::vector<Row> include;
  Settings overrides;  // --set; stronger than all tables
  std::vector<CompareTable> compare;
  bool compare_given = false;
  std::string published;  // file of published numbers; empty: none
  Location published_at;
};

// A folder is named after the experiment, and commands take it as an argument.
inline constexpr const char* name_rule = "1 to 80 of A-Z a-z 0-9 space _ . -, not beginning with space . -";
bool is_experiment_name(const std::string& name);
std::string experiment_name(std::string text);  // the nearest to it that is one

// Reads the whole tree; what is wrong is reported and left out.
ExperimentConfig read_config(const TomlNode& root, const std::string& file, Diagnostics& problems);

// Model first, strategy second, seed last; the others stay in their order.
void sort_dimensions(Matrix& matrix);

// A hyper-parameter that is an axis must be one of every model of the matrix.
void check_hyperparameters(const Matrix& matrix, const Declared& declared, Diagnostics& problems);

// The kind of a strategy by its label: a kind's own name, or what its table says. Null where there is none.
const StrategyKind* strategy_kind(const ExperimentConfig& sheet, const std::string& label);
std::vector<std::string> strategy_labels(const ExperimentConfig& sheet);

// Reports labels that are none of the sheet's, and leaves out what has them.
void check_strategies(ExperimentConfig& sheet, Diagnostics& problems);

// One section each.
Matrix read_matrix(const TomlMember& section, const Declared& declared, Diagnostics& problems);
void read_settings(const TomlNode::Table& table, const std::string& where,
                   const std::vector<std::string>& known, Settings& settings, const Declared& declared,
                   Diagnostics& problems, const std::vector<std::string>& models = {});
std::vector<Row> read_rows(const TomlMember& section, const Declared& declared, Diagnostics& problems);
void read_strategies(const TomlMember& section, ExperimentConfig& sheet, Diagnostics& problems);
std::vector<ExpectedLine> read_expect(const TomlMember& section, const Declared& declared,
                                      Diagnostics& problems);
std::vector<CompareTable> read_compare(const TomlMember& section, const Declared& declared,
                                       Diagnostics& problems);
Machine read_machine(const TomlMember& section, Diagnostics& problems);
std::map<std::string, std::string> read_data(const TomlMember& section, const Declared& declared,
                                             Diagnostics& problems);

void report_no_model(const TomlMember& member, const Declared& declared, Diagnostics& problems);

// The section as a table; reports and gives null where it is none.
// The text of `item` where it can be a path or an argument: not empty, without a zero byte. Else null.
const std::string* path_or_argument(const TomlNode& item);

const TomlNode::Table* section_table(const TomlMember& section, const std::string& what,
                                     Diagnostics& problems);

// Names of the models that the matrix and the added rows use.
std::vector<std::string> used_models(const ExperimentConfig& sheet);

}  // namespace trainyard::experiments
