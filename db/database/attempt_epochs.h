// Rows of `attempt_epoch`: what an epoch of an attempt comes to over all ranks that have written it, kept by
// the writer so that a question about epochs need not look at each rank's metrics. Used by `RunStates`.
#pragma once

#include <cstdint>
#include <string>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

namespace trainyard::db {

class AttemptEpochs {
 public:
  explicit AttemptEpochs(SQLite::Database& connection);

  // Makes the row of this epoch again.
  void put(const std::string& run_key, int attempt, std::int64_t epoch);

 private:
  SQLite::Statement put_;
};

// All rows anew.
void make_attempt_epochs(SQLite::Database& connection);

}  // namespace trainyard::db
