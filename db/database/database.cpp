#include "db/database/database.h"

#include <new>

#include <SQLiteCpp/SQLiteCpp.h>
#include <SQLiteCpp/Savepoint.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "base/disk_failure.h"
#include "db/database/schema.h"
#include "db/database/statements.h"

namespace trainyard::db {

namespace {

using Connection = std::unique_ptr<SQLite::Database>;

constexpr int busy_milliseconds = 10'000;

// Only one thread uses a connection. Locking a mutex at each call would be a tenth of reading many rows.
constexpr int for_reading = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;

// The SQLite URI of `file` as a database that nobody writes: without lock, -wal and -shm.
std::string immutable_uri(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string())
    uri += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", c) : std::string(1, c);
  return uri + "?immutable=1";
}

// Open the file and read from it, because SQLite reports most problems only at the first read.
Connection open_and_read(const std::string& name, int flags) {
  auto connection = std::make_unique<SQLite::Database>(name, flags, busy_milliseconds);
  connection->exec("PRAGMA trusted_schema = OFF");
  connection->execAndGet("SELECT COUNT(*) FROM sqlite_schema");
  return connection;
}

// True if all data is in the file itself, so that the -shm file is not needed.
bool needs_no_wal(const std::filesystem::path& file) {
  std::filesystem::path wal = file;
  wal += "-wal";
  std::error_code error;
  const auto size = std::filesystem::file_size(wal, error);
  return error || size == 0;
}

// True if the -shm file cannot be created: the folder is read-only or the disk is full.
bool is_unwritable(const SQLite::Exception& error) {
  const int code = error.getErrorCode();
  return code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_FULL ||
         error.getExtendedErrorCode() == SQLITE_IOERR_SHMSIZE;
}

Connection open_for_reading(const std::filesystem::path& file) try {
  return open_and_read(file.string(), for_reading);
} catch (const SQLite::Exception& error) {
  if (!is_unwritable(error)) throw;
  if (!needs_no_wal(file))
    throw UserError(
        "cannot write to the folder or disk, and the -wal file has changes that are not in the database yet",
        "copy the folder to a disk that you can write to, and open the copy", {.file = file.string()});
  return open_and_read(immutable_uri(file), for_reading | SQLite::OPEN_URI);
}

[[noreturn]] void refuse(const std::filesystem::path& file, const SQLite::Exception& error) {
  if (error.getErrorCode() == SQLITE_NOMEM) throw std::bad_alloc();
  if (error.getErrorCode() == SQLITE_NOTADB)
    throw UserError("is not a database", "name the yard with --yard, or move this file away",
                    {.file = file.string()});
  if (error.getErrorCode() == SQLITE_CORRUPT)
    throw UserError(std::string("is damaged: ") + error.what(), advice_for(SQLITE_CORRUPT),
                    {.file = file.string()});
  if (error.getErrorCode() == SQLITE_FULL || error.getErrorCode() == SQLITE_IOERR)
    throw OfDisk<UserError>(std::string("cannot open the database: ") + error.what(), advice_for(SQLITE_FULL),
                            Location{.file = file.string()});
  const bool held = error.getErrorCode() == SQLITE_BUSY || error.getErrorCode() == SQLITE_LOCKED;
  throw UserError(std::string("cannot open the database: ") + error.what(),
                  held
                      ? advice_for(SQLITE_BUSY)
                      : "check that the file and its folder can be read and written and the disk is not full",
                  {.file = file.string()});
}

bool is_empty(SQLite::Database& connection) {
  return connection.execAndGet("SELECT COUNT(*) FROM sqlite_schema").getInt() == 0;
}

// UserError if a file that is not empty was written by another program or release.
void check_version(SQLite::Database& connection, const std::filesystem::path& file) {
  const int version = connection.execAndGet("PRAGMA user_version").getInt();
  if (is_empty(connection)) return;
  if (connection.execAndGet("PRAGMA application_id").getInt() != application_id)
    throw UserError("is a database, but was not written by trainyard",
                    "name the yard with --yard, or move this file away", {.file = file.string()});
  if (version != schema_version)
    throw OtherSchemaError(
        fmt::format("has schema {} (this program needs {})", version, schema_version),
        "`trainyard db rebuild` rebuilds it from the yard's files, and so does the next `trainyard run`",
        {.file = file.string()});
}

// Open `name` with SQLite. Errors name `file`.
Connection open_writable(const std::string& name, int flags, const std::filesystem::path& file) try {
  Connection connection = open_and_read(name, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | flags);
  if (sqlite3_db_readonly(connection->getHandle(), "main") == 1)
    throw SQLite::Exception("it is read-only", SQLITE_READONLY);
  check_version(*connection, file);
  connection->execAndGet("PRAGMA journal_mode = WAL");
  connection->exec("PRAGMA synchronous = FULL");
  connection->exec("PRAGMA foreign_keys = ON");
  if (is_empty(*connection)) make_schema(*connection);
  refresh_axis_views(*connection);
  return connection;
} catch (const SQLite::Exception& error) {
  refuse(file, error);
}

// Write without syncing. If the writer is killed, the file is useless.
void write_carelessly(SQLite::Database& connection) {
  translated(connection, [&] {
    connection.execAndGet("PRAGMA journal_mode = MEMORY");
    connection.exec("PRAGMA synchronous = OFF");
    connection.exec("PRAGMA cache_size = -200000");  // KiB
  });
}

void check_exists(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_regular_file(file, error)) return;
  throw UserError("there is no database here",
                  "create one with `trainyard run FILE`, or name another yard with --yard",
                  {.file = file.string()});
}

}  // namespace

Database::Database(std::unique_ptr<SQLite::Database> connection) : connection_(std::move(connection)) {}

Database::~Database() = default;
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;

SQLite::Database& Database::connection() const {
  return *connection_;
}

Database Database::open_read_only(const std::filesystem::path& file) try {
  check_exists(file);
  Connection connection = open_for_reading(file);
  connection->exec("PRAGMA query_only = ON");
  check_version(*connection, file);
  if (is_empty(*connection))
    throw UserError("is empty", "the next `trainyard run` in this yard fills it", {.file = file.string()});
  return Database(std::move(connection));
} catch (const SQLite::Exception& error) {
  refuse(file, error);
}

Database Database::open_for_writing(const std::filesystem::path& file) {
  return Database(open_writable(file.string(), 0, file));
}

Database Database::open_new(const std::filesystem::path& file) {
  Database database = open_for_writing(file);
  write_carelessly(database.connection());
  return database;
}

Database Database::open_temporary() {
  Database database(open_writable("", SQLite::OPEN_URI, "a temporary database"));
  write_carelessly(database.connection());
  return database;
}

void Database::transaction(const std::function<void()>& work) {
  translated(*connection_, [&] {
    if (sqlite3_get_autocommit(connection_->getHandle()) == 0) {
      SQLite::Savepoint inner(*connection_, "inner_transaction");
      work();
      return inner.release();
    }
    const bool reads = sqlite3_db_readonly(connection_->getHandle(), "main") == 1;
    SQLite::Transaction outer(
        *connection_, reads ? SQLite::TransactionBehavior::DEFERRED : SQLite::TransactionBehavior::IMMEDIATE);
    work();
    outer.commit();
  });
}

}  // namespace trainyard::db
