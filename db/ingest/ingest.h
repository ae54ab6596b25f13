// From journal entries, run files and records to rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "db/database/database.h"
#include "experiments/protocol/record.h"

namespace trainyard::db {

// What became of a run file or a record.
enum class Accepted {
  taken,    // it is in the database now
  known,    // it was there already
  gap,      // left out: a record before it is missing; the spool's rest will be left out too, until that one
            // comes
  refused,  // left out: its attempt is not here (never seen, or removed by `rm`), or has no such rank
};

// Turns journal entries, run files and records into rows. Idempotent: any of them may come any number of
// times, in file order, and gives the same database. Each call is all or nothing; a caller that has many puts
// them into one `together`.
class Ingest {
 public:
  explicit Ingest(Database& database);
  ~Ingest();
  // One transaction for all that `work` ingests; rolled back where it throws.
  void together(const std::function<void()>& work);
  // Type "run" or "rm"; see orchestrator/yard/journal.h. InternalError where it is no such entry.
  void journal_entry(const nlohmann::json& entry);
  // A new attempt: experiments/protocol/launch.h. InternalError or UserError where it is not the JSON of a
  // launch.
  Accepted run_file(const nlohmann::json& run_json);
  // Of an attempt whose run file was ingested. Never throws for what a record says: one that cannot be read
  // as its type is kept whole in `extra_record`, with the reason.
  Accepted record(const experiments::Record& record);
  // After all attempts of a yard: marks old ones that overlap in time (`run_states.h`).
  void replayed();

 private:
  struct Statements;
  Database& database_;
  std::unique_ptr<Statements> statements_;
};

// From the files of a whole yard to rows.

// Replays journal.jsonl and every spool below runs/ of `yard` into `database` (an empty one gives the same
// views as the one written during the runs), in one transaction. Returns the number of records read; damaged
// lines are counted and left out, and so is what follows a missing record in its spool. A line without its
// newline is not there yet. UserError where a file cannot be read.
struct Replay {
  std::int64_t records = 0;
  std::int64_t damaged_lines = 0;
  std::int64_t damaged_spools = 0;    // with a record missing, or without a run.json that can be read
  std::vector<std::string> problems;  // "file:line: what is wrong", each one of the above
};
Replay replay(const std::filesystem::path& yard, Database& database);
// The same of the journal alone.
Replay replay_journal(const std::filesystem::path& yard, Database& database);

}  // namespace trainyard::db
