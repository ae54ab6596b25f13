// What SQLite throws, turned into the project's two errors at the boundary of this box.
#pragma once

#include <utility>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>

namespace trainyard::db {

// What to do about an error of SQLite's that the machine or the file is the cause of; null where it is our
// own.
const char* advice_for(int code);

// A UserError for what the user must mend (disk full, no permission, damaged file, locked), an InternalError
// for SQL of ours that is wrong. Names the database file.
[[noreturn]] void rethrow(const SQLite::Exception& error, const SQLite::Database& connection);

template <typename Work>
auto translated(const SQLite::Database& connection, Work&& work) -> decltype(std::forward<Work>(work)()) {
  try {
    return std::forward<Work>(work)();
  } catch (const SQLite::Exception& error) {
    rethrow(error, connection);
  }
}

}  // namespace trainyard::db
