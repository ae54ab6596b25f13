// What the writer keeps so that a question about a run need not look at all its records: how each run stands
// (`run_state`), the attempts that make it up (`attempt_chain`), what its epochs come to over all ranks
// (`attempt_epoch`), which attempts claim what cannot be (`attempt_fault`), and what a finished run ended
// with
// (`run_final`). All of it follows from the other
// tables: it can be made again at any time, and a replay gives equal rows.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include "db/database/record_faults.h"

namespace trainyard::db {

// Rows of `attempt_epoch`: what an epoch of an attempt comes to over all ranks that have written it, kept by
// the writer so that a question about epochs need not look at each rank's metrics. Used by `RunStates`.

class AttemptEpochs {
 public:
  explicit AttemptEpochs(SQLite::Database& connection);

  // Makes the row of this epoch again.
  void put(const std::string& run_key, int attempt, std::int64_t epoch);

 private:
  SQLite::Statement put_;
};

class RunStates {
 public:
  explicit RunStates(SQLite::Database& connection);

  // The run's rows, or also those of this attempt or epoch of it, are out of date from now on.
  void changed(const std::string& run_key) { changed_.try_emplace(run_key); }
  void changed(const std::string& run_key, int attempt) { changed_[run_key].attempts.insert(attempt); }
  void changed(const std::string& run_key, int attempt, std::int64_t epoch) {
    changed_[run_key].epochs.emplace(attempt, epoch);
  }
  // Makes the rows of all changed runs again.
  void refresh();
  // After `refresh` was rolled back, or never came to its end.
  void forget() { changed_.clear(); }

 private:
  struct Changes {
    std::set<int> attempts;
    std::set<std::pair<int, std::int64_t>> epochs;  // each with its attempt
  };
  void refresh(const std::string& run_key);

  std::map<std::string, Changes> changed_;  // by run
  AttemptEpochs epochs_;
  SQLite::Statement put_times_problem_;
  RecordFaults faults_;
  SQLite::Statement clear_chain_;
  SQLite::Statement clear_state_;
  SQLite::Statement clear_final_;
  SQLite::Statement find_counted_;
  SQLite::Statement put_chain_;
  SQLite::Statement put_state_;
  SQLite::Statement put_final_;
};

// Marks attempts of releases without a lock of the host that overlap in time on one host, although each says
// that it had the host to itself, and the states of their runs: after a replay.
void mark_overlaps(SQLite::Database& connection, RunStates& states);

// SQL of the attempts that make up a run: one, the one it resumes, and so on back to where it began.

// A recursive common table `chain (attempt, after_epoch, up_to_epoch)`, to stand behind WITH RECURSIVE:
// attempt ?2 of run ?1 and what it resumes, each with the epochs after_epoch + 1 … up_to_epoch that it
// contributes. An attempt can only resume an earlier one: the recursion ends.
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

// SQL of a metric's mean over all ranks: Σ sum / Σ weight; NULL where no rank wrote it, the weights are 0, or
// a rank's sum is not a number.

// A subquery, of the metrics `x` for which `of` holds: "x.run_key = ?1 AND x.attempt = ?2 AND x.epoch = 0".
inline std::string mean_over_ranks(std::string_view of, std::string_view phase, std::string_view name) {
  return "(SELECT IIF(COUNT(x.sum) = COUNT(*), SUM(x.sum) / NULLIF(SUM(x.weight), 0), NULL) FROM metric x "
         "WHERE " +
         std::string(of) + " AND x.phase = '" + std::string(phase) + "' AND x.name = '" + std::string(name) +
         "')";
}

}  // namespace trainyard::db
