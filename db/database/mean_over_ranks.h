// SQL of a metric's mean over all ranks: Σ sum / Σ weight; NULL where no rank wrote it, the weights are 0, or
// a rank's sum is not a number.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::db {

// A subquery, of the metrics `x` for which `of` holds: "x.run_key = ?1 AND x.attempt = ?2 AND x.epoch = 0".
inline std::string mean_over_ranks(std::string_view of, std::string_view phase, std::string_view name) {
  return "(SELECT IIF(COUNT(x.sum) = COUNT(*), SUM(x.sum) / NULLIF(SUM(x.weight), 0), NULL) FROM metric x "
         "WHERE " +
         std::string(of) + " AND x.phase = '" + std::string(phase) + "' AND x.name = '" + std::string(name) +
         "')";
}

}  // namespace trainyard::db
