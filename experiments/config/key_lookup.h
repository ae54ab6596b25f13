// Lookup of the names that an experiment file may use, and checks of their values. The names are the keys of
// a run, the axes `model` and `strategy`, and the hyper-parameters of the models.
#pragma once

#include <cstdint>
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

// Names for "did you mean".
std::vector<std::string> run_key_names(bool with_strategy_keys);
std::vector<std::string> hyperparameter_names(const models::Model& model);
// All names of values of runs: axes, keys, hyper-parameters.
std::vector<std::string> all_value_names(const Declared& declared);

// Whether runs of any model can have a value with this name. A declared parameter cannot have such a name.
bool is_value_of_every_run(std::string_view name);

// The value of `item` in the type of `parameter`. Otherwise reports what is wrong and what is allowed.
std::optional<Value> checked_value(const Parameter& parameter, const TomlNode& item, Diagnostics& problems);

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

// Keys with more than one notation in a file. All notations give the same type of value.
//   batch        128; { size = 128, per = "global" }; { size = 64, per = "replica" }, also "64 per replica"
//   stage_split  "auto"; [3, 7]

struct Batch {
  std::int64_t size = 128;
  std::string per = "global";
};

// The inverse of `batch_value`, for a value of `checked_batch`.
Batch batch_of(const Value& value);

// The batch of `item`; `parameter` bounds its number. Otherwise reports what is wrong and what is allowed.
std::optional<Value> checked_batch(const Parameter& parameter, const TomlNode& item, Diagnostics& problems);

// "auto", or ascending boundaries. Whether they fit the stages and layers is checked when a run is resolved.
std::optional<Value> checked_stage_split(const Parameter& parameter, const TomlNode& item,
                                         Diagnostics& problems);

}  // namespace trainyard::experiments
