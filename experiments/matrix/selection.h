// `--set`, `--where` and `--exclude-where`: an experiment file changed and narrowed from the command line.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/config/diagnostics.h"
#include "experiments/matrix/expand.h"

namespace trainyard::experiments {

// Each "key=value" holds for every run: it replaces the key's axis and its value in added rows, and is
// stronger than every table. The value is TOML; what is no TOML is a text.
void apply_set(const std::vector<std::string>& changes, ExperimentConfig& sheet, Diagnostics& problems);

// Keeps the runs of which every name has one of its values. Each text is "name=value[,name=value]…".
void apply_where(const std::vector<std::string>& conditions, std::vector<ExpandedRun>& runs,
                 Diagnostics& problems);

// Leaves out the runs that have, for any of the texts, all of its values.
void apply_exclude_where(const std::vector<std::string>& conditions, std::vector<ExpandedRun>& runs,
                         Diagnostics& problems);

// Whether `text` means `value`: "mlp", "0.10" for 0.1, "[250, 100]".
bool means(const std::string& text, const Value& value);

}  // namespace trainyard::experiments
