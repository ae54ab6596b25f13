#include "db/database/schema.h"

#include <string>

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include "base/error.h"
#include "db/database/database.h"
#include "db/database/errors.h"
#include "db/database/run_states.h"

namespace trainyard::db {

namespace {

void drop_views(SQLite::Database& connection) {
  SQLite::Statement names(connection, "SELECT name FROM sqlite_schema WHERE type = 'view'");
  std::string statements;
  while (names.executeStep()) statements += "DROP VIEW \"" + names.getColumn(0).getString() + "\";";
  names.reset();
  connection.exec(statements);
}

UserError wrongly_marked(const SQLite::Database& connection, int found, const std::string& why) {
  return UserError("is marked as a database of schema " + std::to_string(found) +
                       ", but its tables are not of that one" + why,
                   advice_for(SQLITE_CORRUPT), {.file = connection.getFilename()});
}

void bring_forward(SQLite::Database& connection, int found) try {
  if (found < 0) throw wrongly_marked(connection, found, "");
  drop_views(connection);
  for (const std::string_view step : migrations().subspan(static_cast<std::size_t>(found)))
    connection.exec(std::string(step));
  for (const std::string& view : views()) connection.exec(view);
  make_run_states(connection);
} catch (const SQLite::Exception& error) {
  if (error.getErrorCode() != SQLITE_ERROR) throw;  // the disk's fault, or another program's
  throw wrongly_marked(connection, found, std::string(" (") + error.what() + ")");
}

}  // namespace

void migrate(SQLite::Database& connection) {
  SQLite::Transaction transaction(connection, SQLite::TransactionBehavior::IMMEDIATE);
  const int found = connection.execAndGet("PRAGMA user_version").getInt();
  if (found == schema_version) return;
  bring_forward(connection, found);
  connection.exec("PRAGMA application_id = " + std::to_string(application_id));
  connection.exec("PRAGMA user_version = " + std::to_string(schema_version));
  transaction.commit();
}

}  // namespace trainyard::db
