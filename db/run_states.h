// Rows of `run_state` and `attempt_chain`: how each run stands, kept by the writer so that a question about
// runs need not look at all records. What they hold follows from the other tables: they can be made again at
// any time, and a replay gives equal ones.
#pragma once

#include <set>
#include <string>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

namespace trainyard::db {

class RunStates {
 public:
  explicit RunStates(SQLite::Database& connection);

  // Its rows are out of date from now on.
  void changed(const std::string& run_key) { changed_.insert(run_key); }
  // Makes the rows of all changed runs again.
  void refresh();
  // After `refresh` was rolled back, or never came to its end.
  void forget() { changed_.clear(); }

 private:
  void refresh(const std::string& run_key);

  std::set<std::string> changed_;
  SQLite::Statement clear_chain_;
  SQLite::Statement put_chain_;
  SQLite::Statement clear_state_;
  SQLite::Statement put_state_;
};

// Both tables anew, for all runs: the last step of a migration.
void make_run_states(SQLite::Database& connection);

}  // namespace trainyard::db
