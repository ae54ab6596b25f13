// SQL made from the tables of metrics (models/metrics.h) and of the parts of an epoch's time
// (experiments/protocol/time_parts.h): columns of tables and views, and what the writer keeps. Each function
// puts a comma before each column.
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

// `pattern` for each phase and each metric that is a mean over ranks. In it {phase}, {name} and {record}
// stand for those of the metric: "e.{phase}_{name}".
std::string each_mean(Phases phases, std::string_view pattern);

// "CASE … END AS train_perplexity" for each metric that follows from the mean loss, and each phase: NULL
// unless the task of the run `r` has the metric. `v` has the losses.
std::string each_of_loss(Phases phases);

// `pattern` for each metric of the test that has a formula over sums. In it {name} stands for its name and
// {value} for the SQL of its value in attempt ?2 of run ?1.
std::string each_of_sums(std::string_view pattern);

// `pattern` for each part of an epoch's time. In it {part} stands for its name: "{part}_seconds REAL".
std::string each_part(std::string_view pattern);

}  // namespace trainyard::db
