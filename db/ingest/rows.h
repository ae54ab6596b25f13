// Rows of journal entries, of the runs that they plan, of attempts, and of records. Used by `Ingest`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/database/run_states.h"
#include "db/database/statements.h"
#include "db/ingest/ingest.h"
#include "db/ingest/members.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"

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

// Rows of journal entries: `journal`, `journal_key`, `experiment`, `experiment_run`, `removed`, `earlier_result`. The
// SHA-256 of its JSON identifies an entry, which takes effect once.
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

// Rows of records. The records of an attempt and rank (−1: the orchestrator) are read strictly in the order
// of `seq`. `record_log.next_seq` is the next one. Records that come too early are skipped.
class RecordRows {
 public:
  RecordRows(Prepared& prepared, RunStates& states) : states_(states), prepared_(prepared) {}

  // Add the record, and mark the derived rows of its run and epoch in `states` as out of date.
  Accepted take(const experiments::Record& record);
  struct LogState {
    std::int64_t next_seq = 0;  // the number of the next record
    bool ended = false;         // the rank has recorded its end
  };
  // The records of a rank, or of the orchestrator.
  LogState state_of(const std::string& run_key, int attempt, std::optional<int> rank);

 private:
  struct Kind;  // one row of the table of record types
  static const Kind* find_kind(const std::string& type);

  std::optional<std::int64_t> world_size(const experiments::Record& record);
  // Run a statement whose first parameters are the run, attempt and rank of the record.
  template <typename... Values>
  void write(const char* sql, const experiments::Record& record, const Values&... values);
  // The same for values that are read in their order. `Members::rest` is after all others.
  template <typename... Values>
  void write(const char* sql, const experiments::Record& record, const std::tuple<Values...>& all);
  bool is_other(const experiments::Record& record);  // than the one with its number in the database
  void store(const experiments::Record& record);

  void start(const experiments::Record& record, Members& members);
  void epoch(const experiments::Record& record, Members& members);
  void test(const experiments::Record& record, Members& members);
  void message(const experiments::Record& record, Members& members);
  void probe(const experiments::Record& record, Members& members);
  void step(const experiments::Record& record, Members& members);
  void end(const experiments::Record& record, Members& members);
  void event(const experiments::Record& record, Members& members);
  void metrics(const experiments::Record& record, std::int64_t epoch, Members& members);
  void extra(const experiments::Record& record, const std::optional<std::string>& problem);

  RunStates& states_;
  Prepared& prepared_;
};

}  // namespace trainyard::db
