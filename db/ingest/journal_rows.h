// Journal entries as rows: `journal`, `journal_key`, `experiment`, `experiment_run`, `removed`, and the runs
// they plan. An entry is known by the SHA-256 of its JSON and takes effect once.
#pragma once

#include <cstdint>
#include <string>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/ingest/ingest.h"
#include "experiments/protocol/launch.h"

namespace trainyard::db {

// Rows of `run` and `axis_value`: the resolved run behind a key. Written from journal entries, and from
// run.json where no journal entry knows the key.

enum class RunOrigin { launch = 0, journal = 1 };  // a journal entry's run replaces one that a launch brought

class RunRows {
 public:
  explicit RunRows(SQLite::Database& connection);

  // `resolved` is the JSON of an `experiments::Run`; InternalError where it is not.
  void put(const std::string& key, const nlohmann::json& resolved, RunOrigin origin);

  // Deletes the run and everything below it.
  void remove(const std::string& key);

 private:
  void put_values(const std::string& key, const nlohmann::json& resolved);

  SQLite::Statement put_;
  SQLite::Statement clear_values_;
  SQLite::Statement put_value_;
  SQLite::Statement remove_;
};

class JournalRows {
 public:
  JournalRows(SQLite::Database& connection, RunRows& runs);

  // Types "run" and "rm"; others are kept without effect. InternalError where a member is missing, or wrong
  // as a row or for the queries that read it (db/queries/queries.h).
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

// Rows of `attempt`, from run.json: what an attempt's ranks were told, and where they ran.

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
