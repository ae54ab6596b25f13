// The results database of a yard: SQLite in WAL mode, one writer, any number of read-only readers. Everything
// in it comes from append-only files (journal, run.json, records) and can be rebuilt from them at any time.
// Users: the orchestrator's collector writes, `reports` and the command line read through `db/queries.h`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/record.h"
#include "models/error.h"

namespace SQLite {
class Database;
}

namespace trainyard::db {

inline constexpr int schema_version = 10;

// The database cannot be written or read any more: the disk is full, cannot be written, or fails. What was
// committed is intact.
class StorageError : public UserError {
 public:
  using UserError::UserError;
};

// The file is of an earlier release; opened for writing it is brought forward.
class OlderSchemaError : public UserError {
 public:
  using UserError::UserError;
};

// An open connection; used by one thread at a time. Both openers throw UserError where the file is no
// database, not one of trainyard, or of a later release.
class Database {
 public:
  // Cannot change the file and does not create it (UserError where there is none). Works beside a writer, and
  // in a folder that cannot be written: there the file is taken as nobody's to change while it is open.
  static Database open_read_only(const std::filesystem::path& file);
  // Creates it (its folder must be there), migrates it forward.
  static Database open_for_writing(const std::filesystem::path& file);
  // A file that is of no use unless all of it is written: what is killed meanwhile begins anew. Nobody else
  // has it open, and its owner syncs it once it is closed.
  static Database open_new(const std::filesystem::path& file);
  // The same without a name, in SQLite's temporary files (TMPDIR), gone when it is closed. One that
  // `open_read_only` has opened can be attached to it.
  static Database open_temporary();
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  SQLite::Database& connection() const;
  // Runs `work` in one transaction; rolls back where it throws. On a read-only connection: all that `work`
  // reads is of one moment, whatever a writer does meanwhile. May be nested.
  void transaction(const std::function<void()>& work);

 private:
  explicit Database(std::unique_ptr<SQLite::Database> connection);
  std::unique_ptr<SQLite::Database> connection_;
};

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
  // Type "run" or "rm"; see orchestrator/journal.h. InternalError where it is no such entry.
  void journal_entry(const nlohmann::json& entry);
  // A new attempt: experiments/launch.h. InternalError or UserError where it is not the JSON of a launch.
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
