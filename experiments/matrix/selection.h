// The options `--set`, `--where` and `--exclude-where`: they change an experiment file and select its runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/config/diagnostics.h"
#include "experiments/matrix/expand.h"

namespace trainyard::experiments {

// Applies each "key=value" to every run. It replaces the axis of the key and its value in [[include]] rows,
// and overrides every table. A value that is not TOML is a text.
void apply_set(const std::vector<std::string>& changes, ExperimentConfig& config, Diagnostics& problems);

// Keeps the runs that have, for every name, one of its values. A text is "name=value[,name=value]…".
void apply_where(const std::vector<std::string>& conditions, std::vector<ExpandedRun>& runs,
                 Diagnostics& problems);

// Removes the runs that have all values of any of the texts.
void apply_exclude_where(const std::vector<std::string>& conditions, std::vector<ExpandedRun>& runs,
                         Diagnostics& problems);

// Whether each of the runs has, for every name, one of its values. Reports names and values that no run has.
// `option`: the name of the option, for messages.
std::vector<bool> matching(const std::vector<std::string>& conditions,
                           const std::vector<std::map<std::string, Value>>& runs, const std::string& option,
                           Diagnostics& problems);

// Whether `text` denotes `value`: "mlp", "0.10" for 0.1, "[250, 100]".
bool means(const std::string& text, const Value& value);

}  // namespace trainyard::experiments
