// `probe` records as rows: a row of `probe` for each step of a rank, one of `probe_layer` for each of its
// parameters.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include "db/ingest/members.h"
#include "experiments/protocol/record.h"

namespace trainyard::db {

class ProbeRows {
 public:
  explicit ProbeRows(SQLite::Database& connection);

  // What an earlier record of that step said is replaced. Unreadable where a member has a wrong type.
  void take(const experiments::Record& record, Members& members);

 private:
  SQLite::Statement clear_;
  SQLite::Statement put_step_;
  SQLite::Statement put_layer_;
};

}  // namespace trainyard::db
