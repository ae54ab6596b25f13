// How long a sweep of this yard will still take, for a program that only looks at it: `trainyard status`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "db/queries/queries.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::tools {

struct TimeEstimate {
  std::map<std::string, double> seconds_left;  // of runs under way, by key; absent: unknown
  std::optional<double> sweep_seconds_left;    // empty: unknown
};

// From how far the runs under way have come, and from finished runs of the same kind for those that wait.
// `runs` are those of one experiment; `asked` is the time of its latest plan.
TimeEstimate time_estimate(const db::Database& database, const orchestrator::Yard& yard,
                           const std::vector<db::RunSummary>& runs, const std::string& asked);

}  // namespace trainyard::tools
