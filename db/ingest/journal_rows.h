// Journal entries as rows: `journal`, `journal_key`, `experiment`, `experiment_run`, `removed`, and the runs
// they plan. An entry is known by the SHA-256 of its JSON and takes effect once.
#pragma once

#include <cstdint>
#include <string>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <nlohmann/json.hpp>

#include "db/ingest/run_rows.h"

namespace trainyard::db {

class JournalRows {
 public:
  JournalRows(SQLite::Database& connection, RunRows& runs);

  // Types "run" and "rm"; others are kept without effect. InternalError where a member is missing, or wrong
  // as a row or for the queries that read it (db/queries/plan_members.h).
  void take(const nlohmann::json& entry);

 private:
  bool known(const std::string& hash);
  std::int64_t insert(const nlohmann::json& entry, const std::string& hash);
  void plan(std::int64_t id, const nlohmann::json& entry);
  void remove(std::int64_t id, const nlohmann::json& entry);

  SQLite::Database& connection_;
  RunRows& runs_;
  SQLite::Statement find_;
  SQLite::Statement insert_;
  SQLite::Statement insert_key_;
  SQLite::Statement put_experiment_;
  SQLite::Statement put_experiment_run_;
  SQLite::Statement put_removed_;
};

}  // namespace trainyard::db
