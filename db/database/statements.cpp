#include "db/database/statements.h"

#include <string>

#include <sqlite3.h>

#include "base/error.h"
#include "db/database/database.h"

namespace trainyard::db {

const char* advice_for(int code) {
  switch (code) {
    case SQLITE_FULL:
      return "free some space on the disk and run the same command again";
    case SQLITE_IOERR:
      return "the disk does not do what it is told; see `dmesg`, then `trainyard db check`";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "`trainyard db rebuild` makes it anew from the journal and the records beside it";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another program holds it locked; end that one first";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return "check that the file and its folder can be written";
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
