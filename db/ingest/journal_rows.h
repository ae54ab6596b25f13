// Rows of journal entries (`journal`, `journal_key`, `experiment`, `experiment_run`, `removed`,
// `earlier_result`), of the runs that they plan, and of attempts. The SHA-256 of its JSON identifies an entry, which takes effect once.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/ingest/ingest.h"
#include "db/ingest/prepared.h"
#include "experiments/protocol/launch.h"

namespace trainyard::db {

// The source of a resolved run. A run from a journal entry replaces a run from run.json.
enum class RunOrigin { launch = 0, journal = 1 };

// Rows of `run` and `axis_value`: the resolved run of a key, from a journal entry. If the journal does not
// have the key, run.json is used.
class RunRows {
 public:
  explicit RunRows(Prepared& prepared) : prepared_(prepared) {}

  // `resolved` is the JSON of an `experiments::Run` with this key, else InternalError.
  void put(const std::string& key, const nlohmann::json& resolved, RunOrigin origin);

  // Delete the attempts of the run. A run that an experiment plans stays planned.
  void remove(const std::string& key);

 private:
  Prepared& prepared_;
};

class JournalRows {
 public:
  JournalRows(Prepared& prepared, RunRows& runs) : prepared_(prepared), runs_(runs) {}

  // Types other than "run", "rm" and "retrain" are only kept. InternalError if a member is
  // missing or wrong, also if only the queries could not read it (db/queries/queries.h).
  void take(const nlohmann::json& entry);

 private:
  std::int64_t insert(const nlohmann::json& entry, const std::string& hash);
  void plan(std::int64_t id, const nlohmann::json& entry);
  void remove(std::int64_t id, const nlohmann::json& entry);
  void insert_earlier_results(const nlohmann::json& entry);

  Prepared& prepared_;
  RunRows& runs_;
};

// Rows of `attempt`, from run.json: the input of an attempt's ranks, and their host.
class AttemptRows {
 public:
  AttemptRows(Prepared& prepared, RunRows& runs) : prepared_(prepared), runs_(runs) {}

  // Returns taken, known, or refused if `rm` has removed the attempt. UserError or InternalError if
  // `run_json` is not the JSON of a launch.
  Accepted take(const nlohmann::json& run_json);

 private:
  void insert(const experiments::Launch& launch, const nlohmann::json& run_json);

  Prepared& prepared_;
  RunRows& runs_;
};

}  // namespace trainyard::db
