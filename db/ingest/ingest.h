// From journal entries, run files and records to rows.
#pragma once

#include <functional>
#include <memory>

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

}  // namespace trainyard::db
