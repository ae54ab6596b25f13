// Lookup of the names that an experiment file may use, and checks of their values. The names are the keys of
// a run, the axes `model` and `strategy`, and the hyper-parameters of the models.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/parameter.h"
#include "experiments/config/declared.h"
#include "experiments/config/diagnostics.h"
#include "experiments/config/toml_tree.h"
#include "experiments/run/keys.h"
#include "models/catalogue.h"

namespace trainyard::experiments {

// A key of a run, or one of the axes `model` and `strategy`. Null for other names.
const Parameter* run_parameter(std::string_view name);
const Parameter* hyperparameter(const models::Model& model, std::string_view name);
bool is_hyperparameter(std::string_view name, const Declared& declared);  // of any model
bool is_strategy_key(std::string_view name);  // only in [strategy.*] and as an axis

// The name in quotation marks for a message, always on one line.
std::string in_quotes(const std::string& name);

bool contains(const std::vector<std::string>& names, const std::string& name);

// Whether the name has only letters, digits and underscores, and does not begin with a digit.
bool is_identifier(const std::string& name);

// Names for "did you mean".
std::vector<std::string> run_key_names(bool with_strategy_keys);
std::vector<std::string> hyperparameter_names(const models::Model& model);
// All names of values of runs: axes, keys, hyper-parameters.
std::vector<std::string> all_value_names(const Declared& declared);

// Whether runs of any model can have a value with this name. A declared parameter cannot have such a name.
bool is_value_of_every_run(std::string_view name);

// The value of `item` in the type of `parameter`. Otherwise reports what is wrong and what is allowed.
std::optional<Value> checked_value(const Parameter& parameter, const TomlNode& item, Diagnostics& problems);

// Stores the value of `item` in `target`, if it suits `parameter`. Otherwise reports it.
template <class Target>
void read_value(const Parameter& parameter, const TomlNode& item, Target& target, Diagnostics& problems) {
  if (const auto value = checked_value(parameter, item, problems)) target = std::get<Target>(*value);
}

// Parameters without a default.
Parameter choice(std::string name, std::vector<std::string> choices);
Parameter bounded(std::string name, ValueType type, std::optional<Bound> minimum = {},
                  std::optional<Bound> maximum = {});

// As above, for a name of the experiment file.
// - A hyper-parameter must suit at least one model. The model of a run is checked when the run is resolved.
// - `models`: models that the value is meant for. An error describes the parameter of one of them.
std::optional<Value> checked_value(const std::string& name, const TomlNode& item, const Declared& declared,
                                   Diagnostics& problems, const std::vector<std::string>& models = {});

// Advice for a message: "; did you mean …?", or the known names if there are few.
std::string key_advice(const std::string& name, const std::vector<std::string>& known);

// Whether it is a key of the file itself, not of a section.
bool is_root_key(std::string_view name);

// Reports that `member` is not a key of `where` ("[defaults]"), with advice.
void report_unknown(const TomlMember& member, const std::string& where, const std::vector<std::string>& known,
                    Diagnostics& problems);

// Reports that the value of `what` is not as allowed.
void report_wrong(const std::string& what, const std::string& allowed, const TomlNode& item,
                  Diagnostics& problems);

// A key of a table, and the reader of its value.
struct KeyReader {
  std::string name;
  std::function<void(const TomlMember& member)> read;
};

// Stores the value of a key in `target`.
template <class Target>
auto value_reader(const Parameter& parameter, Target& target, Diagnostics& problems) {
  return [&, parameter](const TomlMember& member) { read_value(parameter, member.value, target, problems); };
}

// Reads the keys of the table `where`. Reports others as unknown.
void read_keys(const TomlNode::Table& table, const std::string& where, const std::vector<KeyReader>& keys,
               Diagnostics& problems);

// As above, for a member that must be a table. If it is not, reports that.
void read_table(const TomlMember& member, const std::string& where, const std::vector<KeyReader>& keys,
                Diagnostics& problems);

// The section as a table. If it is not a table, reports that and returns null.
const TomlNode::Table* section_table(const TomlMember& section, const std::string& what,
                                     Diagnostics& problems);

// The members of a section. If it is not a table, reports that and returns none.
const TomlNode::Table& members_of(const TomlMember& section, const std::string& what, Diagnostics& problems);

// Keys with more than one notation in a file. All notations give the same type of value.
//   batch        128; { size = 128, per = "global" }; { size = 64, per = "replica" }, also "64 per replica"
//   stage_split  "auto"; [3, 7]
//   tensor_split "auto"; [1, 3]; { width = 2 }, also "width = 2"

struct Batch {
  std::int64_t size = 128;
  std::string per = "global";
};

// The inverse of `batch_value`, for a value of `checked_value`.
Batch batch_of(const Value& value);

}  // namespace trainyard::experiments
