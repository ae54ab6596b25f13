// Rows of `attempt`, from run.json: what an attempt's ranks were told, and where they ran.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/ingest/ingest.h"
#include "db/ingest/run_rows.h"
#include "experiments/protocol/launch.h"

namespace trainyard::db {

class AttemptRows {
 public:
  AttemptRows(SQLite::Database& connection, RunRows& runs);

  // taken, known, or refused: one of those that the journal's last `rm` of its run removed. UserError or
  // InternalError where it is not the JSON of a launch.
  Accepted take(const nlohmann::json& run_json);

 private:
  bool known(const experiments::Launch& launch);
  bool was_removed(const experiments::Launch& launch);
  void insert(const experiments::Launch& launch, const nlohmann::json& run_json);

  RunRows& runs_;
  SQLite::Statement find_;
  SQLite::Statement find_removed_;
  SQLite::Statement insert_;
};

}  // namespace trainyard::db
