// Remaining time of a sweep, estimated from the database and progress files. Used by `trainyard status`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "db/queries/queries.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::tools {

struct TimeEstimate {
  std::map<std::string, double> seconds_left;  // of active runs, by key; absent: unknown
  std::optional<double> sweep_seconds_left;    // empty: unknown
};

// Active runs are estimated from their progress, pending runs from finished runs of the same kind.
// - runs: those of one experiment.
// - asked: the time of its latest plan.
TimeEstimate time_estimate(const db::Database& database, const orchestrator::Yard& yard,
                           const std::vector<db::RunSummary>& runs, const std::string& asked);

}  // namespace trainyard::tools
