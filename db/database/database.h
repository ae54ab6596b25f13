// The results database of a yard: SQLite in WAL mode, one writer, any number of read-only readers. Everything
// in it comes from append-only files (journal, run.json, records) and can be rebuilt from them at any time.
// Users: the orchestrator's collector writes, `reports` and the command line read through
// `db/queries/queries.h`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/error.h"
#include "models/metrics.h"

namespace SQLite {
class Database;
}

namespace trainyard::db {

// `PRAGMA user_version`: rises with every change of a table (db/database/schema.h), and each metric has
// columns.
inline constexpr int schema_version = 5 + static_cast<int>(models::all_metrics.size());

// The database cannot be written or read any more: the disk is full, cannot be written, or fails. What was
// committed is intact.
class StorageError : public UserError {
 public:
  using UserError::UserError;
};

// The file is of an earlier release. No opener changes it: `open_yard_for_writing` (db/ingest/maintenance.h)
// makes it again from the yard's files.
class OlderSchemaError : public UserError {
 public:
  OlderSchemaError(int schema, const std::filesystem::path& file);
  int schema;
};

// An open connection; used by one thread at a time. Both openers throw UserError if the file is not a
// database, not one of trainyard, or of another release.
class Database {
 public:
  // Cannot change the file and does not create it (UserError where there is none). Works beside a writer, and
  // in a folder that cannot be written: there the file is taken as nobody's to change while it is open.
  static Database open_read_only(const std::filesystem::path& file);
  // Creates it if it is not there or empty; its folder must be there.
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

}  // namespace trainyard::db
