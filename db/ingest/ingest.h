// Ingest of journal entries, run files and records into the database.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "db/database/database.h"
#include "experiments/protocol/record.h"

namespace trainyard::db {

// The result for a run file or a record.
enum class Accepted {
  taken,     // it is in the database now
  known,     // it was in the database already
  gap,       // skipped: an earlier record is missing, and later records are skipped until it comes
  conflict,  // skipped: the database has another record with this number
  refused,   // skipped: the attempt is unknown or was removed by `rm`, or it has no such rank
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
  // The number of the next record of a rank, or of the orchestrator. 0 if the database has none.
  std::int64_t next_number(const std::string& run_key, int attempt, std::optional<int> rank);

 private:
  struct Statements;
  Database& database_;
  std::unique_ptr<Statements> statements_;
};

}  // namespace trainyard::db
