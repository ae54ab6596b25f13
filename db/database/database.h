// The results database of a yard: SQLite in WAL mode.
// - One writer (the orchestrator's collector), any number of read-only readers. `reports` and the command
//   line read through `db/queries/queries.h`.
// - All content can be rebuilt from append-only files: the journal, run.json and records.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "base/error.h"
#include "models/metrics.h"

namespace SQLite {
class Database;
}

namespace trainyard::db {

// `PRAGMA user_version`. Increase it with every change of a table (db/database/schema.h). A new metric
// increases it too, because each metric has columns.
inline constexpr int schema_version = 14 + static_cast<int>(models::all_metrics.size());

// Why times do not count that nobody needs: `times_problem` of a run whose run.json has `times_needed` false.
inline constexpr const char* times_not_needed =
    "it was trained beside other runs, because its times were not needed";

// The database can no longer be read or written: the disk is full, read-only or broken. Committed data is
// intact.
class StorageError : public UserError {
 public:
  using UserError::UserError;
};

// The file has another schema version. No opener changes it: `open_yard_for_writing`
// (db/ingest/maintenance.h) rebuilds it from the yard's files.
class OtherSchemaError : public UserError {
 public:
  using UserError::UserError;
};

// An open connection, for one thread at a time. The openers throw UserError if the file is not a database, or
// was written by another program or release.
class Database {
 public:
  // Open a file that must exist (UserError), without changing it. A writer may be active. If the folder
  // cannot be written, the file is opened as immutable: nobody may change it meanwhile.
  static Database open_read_only(const std::filesystem::path& file);
  // Open a file, or create it if it is missing or empty. Its folder must exist.
  static Database open_for_writing(const std::filesystem::path& file);
  // Open a file that is useless until it is complete, without syncing: a killed writer starts again. Only the
  // caller has it open, and syncs it after closing.
  static Database open_new(const std::filesystem::path& file);
  // The same in SQLite's temporary files (TMPDIR), removed when it is closed. A file from `open_read_only`
  // can be attached to it.
  static Database open_temporary();
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  SQLite::Database& connection() const;
  // Run `work` in one transaction, and roll back if it throws. May be nested. On a read-only connection
  // `work` reads one snapshot, whatever a writer does meanwhile.
  void transaction(const std::function<void()>& work);

 private:
  explicit Database(std::unique_ptr<SQLite::Database> connection);
  std::unique_ptr<SQLite::Database> connection_;
};

}  // namespace trainyard::db
