// Keys of an experiment file: looked up by name, and the forms in which a value may be written.
//
// Which names an experiment file may use where, and what a value of each must be: the keys of a run, the axes
// `model` and `strategy`, and the hyper-parameters of the catalogue, looked up by name.
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

// The key of a run, or one of the axes `model` and `strategy`; null where it is neither.
const Parameter* run_parameter(std::string_view name);
const Parameter* hyperparameter(const models::Model& model, std::string_view name);
bool is_hyperparameter(std::string_view name, const Declared& declared);  // of any model
bool is_strategy_key(std::string_view name);  // only in [strategy.*] and as an axis

// For messages: in quotation marks, on one line whatever it holds.
std::string in_quotes(const std::string& name);

// Names for «did you mean».
std::vector<std::string> run_key_names(bool with_strategy_keys);
std::vector<std::string> hyperparameter_names(const models::Model& model);
// Whatever a run has a value of: axes, keys, hyper-parameters.
std::vector<std::string> all_value_names(const Declared& declared);

// Whether every run may have a value of that name, whatever its model: no parameter can be called so.
bool is_value_of_every_run(std::string_view name);

// The value of `item` as `parameter` wants it; else reports what is wrong and what is allowed.
std::optional<Value> checked_value(const Parameter& parameter, const TomlNode& item, Diagnostics& problems);

// As above for a name of the vocabulary. A hyper-parameter must suit one model at least; which one a run has
// is checked when the run is resolved. `models` are meant, where any are: problems are told for those.
std::optional<Value> checked_value(const std::string& name, const TomlNode& item, const Declared& declared,
                                   Diagnostics& problems, const std::vector<std::string>& models = {});

// "; did you mean …?", or what is known: as a list where it is short.
std::string key_advice(const std::string& name, const std::vector<std::string>& known);

// Reports `member` as no key of `where` ("[defaults]"), with advice.
void report_unknown(const TomlMember& member, const std::string& where, const std::vector<std::string>& known,
                    Diagnostics& problems);

// Keys that a file may write in more than one way, and the one value that each way comes to.
//   batch        128; { size = 128, per = "global" }; { size = 64, per = "replica" }, also "64 per replica"
//   stage_split  "auto"; [3, 7]

struct Batch {
  std::int64_t size = 128;
  std::string per = "global";
};

// Of a value that `checked_batch` has made (`batch_value` is the way back).
Batch batch_of(const Value& value);

// The value of `item`, whose number `parameter` bounds; else reports what is wrong and what is allowed.
std::optional<Value> checked_batch(const Parameter& parameter, const TomlNode& item, Diagnostics& problems);

// "auto", or boundaries that ascend. Whether they fit the stages and layers of a run is checked with the run.
std::optional<Value> checked_stage_split(const Parameter& parameter, const TomlNode& item,
                                         Diagnostics& problems);

}  // namespace trainyard::experiments
