// Ingest of journal entries, run files and records into the database.
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

// The result for a run file or a record.
enum class Accepted {
  taken,    // it is in the database now
  known,    // it was in the database already
  gap,      // skipped: an earlier record is missing, and later records are skipped until it comes
  refused,  // skipped: the attempt is unknown or was removed by `rm`, or it has no such rank
};

// Writer of rows for journal entries, run files and records.
// - Idempotent: each may come any number of times, in file order.
// - Atomic: each call changes everything or nothing. Put many calls into one `together`.
class Ingest {
 public:
  explicit Ingest(Database& database);
  ~Ingest();
  // One transaction for all calls in `work`, rolled back if it throws.
  void together(const std::function<void()>& work);
  // An entry of type "run" or "rm" (orchestrator/yard/journal.h). InternalError if it is not such an entry.
  void journal_entry(const nlohmann::json& entry);
  // A new attempt (experiments/protocol/launch.h). InternalError or UserError if it is not the JSON of a
  // launch.
  Accepted run_file(const nlohmann::json& run_json);
  // A record of an attempt whose run file was ingested. A record that cannot be read as its type is not an
  // error: it is kept whole in `extra_record`, with the reason.
  Accepted record(const experiments::Record& record);
  // Call after all attempts of a yard: marks old attempts that overlap in time (`run_states.h`).
  void replayed();

 private:
  struct Statements;
  Database& database_;
  std::unique_ptr<Statements> statements_;
};

// Replay of journal.jsonl and of all record files below runs/ of `yard`, in one transaction. An empty
// database gets the same views as the one that was written during the runs.
// - Damaged lines are counted and skipped, and so are the records after a missing one.
// - A line without its newline is ignored, because it is still being written.
// - If a record log exceeded a limit, it is read up to the line where the orchestrator stopped.
// - UserError if a file cannot be read.
struct Replay {
  std::int64_t records = 0;
  std::int64_t damaged_lines = 0;
  std::int64_t damaged_spools = 0;  // a record is missing, or run.json is missing or damaged
  // "file:line: what is wrong" for each of the above, at most 20 damaged lines of each record log.
  std::vector<std::string> problems;
};
Replay replay(const std::filesystem::path& yard, Database& database);
// The same for the journal only.
Replay replay_journal(const std::filesystem::path& yard, Database& database);

}  // namespace trainyard::db
