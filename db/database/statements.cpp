#include "db/database/statements.h"

#include <string>

#include <sqlite3.h>

#include "base/error.h"
#include "db/database/database.h"

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
  const char* advice = advice_for(error.getErrorCode());
  const std::string& file = connection.getFilename();
  if (!advice) throw InternalError("database " + file + ": " + error.what());
  throw StorageError(std::string("database: ") + error.what(), advice, {.file = file});
}

}  // namespace trainyard::db
