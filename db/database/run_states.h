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
#include <utility>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include "db/database/attempt_epochs.h"
#include "db/database/record_faults.h"

namespace trainyard::db {

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

// All these tables anew, for all runs: the last step of a migration.
void make_run_states(SQLite::Database& connection);

// Marks attempts of releases without a lock of the host that overlap in time on one host, although each says
// that it had the host to itself, and the states of their runs: after a replay, and in a migration.
void mark_overlaps(SQLite::Database& connection, RunStates& states);

}  // namespace trainyard::db
