// Results that somebody could see before `rm` removed them or the run was trained again. The journal keeps
// their values, so a verdict can say what they were.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/queries/metric_values.h"

namespace trainyard::db {

struct EarlierResult {
  int attempt = 0;
  std::string launched;       // UTC
  std::string times_problem;  // why its times do not count; empty if they do
  MetricValues values;        // as in `FinalMetrics`
};

// The results of these runs as they are now, by run key, for the member `results` of a journal entry. Runs
// that are not finished have none.
nlohmann::json results_of(const Database& database, const std::vector<std::string>& keys);

// By run key, the earliest first. A run whose latest result is in this list has lost it.
std::map<std::string, std::vector<EarlierResult>> earlier_results(const Database& database,
                                                                  const std::string& experiment);

}  // namespace trainyard::db
