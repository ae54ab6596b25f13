// Derived tables that the writer keeps up to date, so that queries need not read all records. A replay gives
// the same rows.
// - `run_state`: the status of each run.
// - `attempt_chain`: the attempts that make up a run.
// - `attempt_epoch`: the epochs over all ranks.
// - `attempt_fault`: attempts with impossible records.
// - `run_final`: the final values of finished runs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <SQLiteCpp/Database.h>

#include "db/database/record_faults.h"
#include "db/database/statements.h"

namespace trainyard::db {

class RunStates {
 public:
  explicit RunStates(SQLite::Database& connection) : prepared_(connection), faults_(prepared_) {}

  // Mark the rows of a run as out of date, also those of one of its attempts or epochs.
  void changed(const std::string& run_key) { changed_.try_emplace(run_key); }
  void changed(const std::string& run_key, int attempt) { changed_[run_key].attempts.insert(attempt); }
  void changed(const std::string& run_key, int attempt, std::int64_t epoch) {
    changed_[run_key].epochs.emplace(attempt, epoch);
  }
  // Update the rows of all marked runs.
  void refresh();
  // Remove all marks, after `refresh` was rolled back or did not run.
  void forget() { changed_.clear(); }

 private:
  struct Changes {
    std::set<int> attempts;
    std::set<std::pair<int, std::int64_t>> epochs;  // each with its attempt
  };
  void refresh(const std::string& run_key);

  std::map<std::string, Changes> changed_;  // by run
  Prepared prepared_;
  RecordFaults faults_;
};

// A common table `chain (attempt, after_epoch, up_to_epoch)`, to follow WITH RECURSIVE: attempt ?2 of run ?1
// and the attempts that it resumes. Each contributes the epochs after_epoch + 1 … up_to_epoch. The recursion
// ends because an attempt can only resume an earlier one.
inline std::string attempt_chain_from_last() {
  return R"sql(chain (attempt, after_epoch, up_to_epoch, resumes) AS (
  SELECT a.attempt, IIF(a.resumes_attempt < a.attempt, COALESCE(a.resumes_after_epoch, 0), 0),
         9223372036854775807, IIF(a.resumes_attempt < a.attempt, a.resumes_attempt, NULL)
  FROM attempt a WHERE a.run_key = ?1 AND a.attempt = ?2
  UNION ALL
  SELECT a.attempt, IIF(a.resumes_attempt < a.attempt, COALESCE(a.resumes_after_epoch, 0), 0),
         MIN(c.up_to_epoch, c.after_epoch), IIF(a.resumes_attempt < a.attempt, a.resumes_attempt, NULL)
  FROM chain c JOIN attempt a ON a.run_key = ?1 AND a.attempt = c.resumes
))sql";
}

// A subquery for a metric's mean over ranks: Σ sum / Σ weight. NULL if no rank wrote it, if the weights are
// 0, or if the sum of a rank is not a number. `of` selects the metrics `x`, for example "x.run_key = ?1 AND
// x.attempt = ?2 AND x.epoch = 0".
inline std::string mean_over_ranks(std::string_view of, std::string_view phase, std::string_view name) {
  return "(SELECT IIF(COUNT(x.sum) = COUNT(*), SUM(x.sum) / NULLIF(SUM(x.weight), 0), NULL) FROM metric x "
         "WHERE " +
         std::string(of) + " AND x.phase = '" + std::string(phase) + "' AND x.name = '" + std::string(name) +
         "')";
}

}  // namespace trainyard::db
