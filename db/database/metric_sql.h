// SQL columns generated from the metrics (models/metrics.h) and the parts of an epoch's time
// (experiments/protocol/time_parts.h). Each function puts a comma before each column.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "models/metrics.h"

namespace trainyard::db {

using Phases = std::span<const std::string_view>;
inline constexpr Phases all_phases{models::phases};
inline constexpr Phases epoch_phases = all_phases.first(2);
inline constexpr Phases test_phase = all_phases.last(1);

// `pattern` for each phase and each metric that is a mean over ranks, for example "e.{phase}_{name}".
// Placeholders: {phase}, {name} and {record} of the metric. `each_recorded` has all of them, `each_mean` those
// without parts of a network's own loss, and `each_loss_part` these parts.
std::string each_recorded(Phases phases, std::string_view pattern);
std::string each_mean(Phases phases, std::string_view pattern);
std::string each_loss_part(Phases phases, std::string_view pattern);

// "CASE … END AS train_perplexity" for each phase and each metric that is a function of the mean loss. NULL
// if the task of the run `r` does not have the metric. `v` has the losses.
std::string each_of_loss(Phases phases);

// `pattern` for each test metric that is computed from sums. Placeholders: {name}, and {value} for the SQL of
// its value in attempt ?2 of run ?1.
std::string each_of_sums(std::string_view pattern);

// `pattern` for each part of an epoch's time, for example "{part}_seconds REAL".
std::string each_part(std::string_view pattern);

}  // namespace trainyard::db
