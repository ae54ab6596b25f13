#include "db/database/statements.h"

#include <new>
#include <string_view>

#include <sqlite3.h>

#include "base/disk_failure.h"
#include "base/error.h"

namespace trainyard::db {

const char* advice_for(int code) {
  switch (code) {
    case SQLITE_FULL:
      return "free disk space and run the same command again";
    case SQLITE_IOERR:
      return "look for disk errors with `dmesg`, then run `trainyard db check`";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "`trainyard db rebuild` rebuilds it from the journal and the records";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "end the program that has locked it";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return "check that you can write to the file and its folder";
    default:
      return nullptr;
  }
}

void rethrow(const SQLite::Exception& error, const SQLite::Database& connection) {
  const int code = error.getErrorCode() & 0xFF;  // a backup reports an extended code
  if (code == SQLITE_NOMEM) throw std::bad_alloc();
  const std::string message = std::string("database: ") + error.what();
  const std::string& file = connection.getFilename();
  if (code == SQLITE_FULL || code == SQLITE_IOERR)
    throw OfDisk<StorageError>(message, advice_for(code), Location{.file = file});
  // SQLite reports a text that should be JSON, and a view of tables that do not exist, like a wrong query. Only damage
  // of the file makes them.
  const std::string_view what = error.what();
  const bool damaged = what.starts_with("malformed JSON") || what.starts_with("no such ");
  const char* advice = advice_for(damaged ? SQLITE_CORRUPT : code);
  if (!advice) throw InternalError("database " + file + ": " + error.what());
  throw StorageError(message, advice, {.file = file});
}

}  // namespace trainyard::db
