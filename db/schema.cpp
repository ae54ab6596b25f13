#include "db/schema.h"

#include <string>

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/database.h"
#include "db/run_states.h"

namespace trainyard::db {

namespace {

void drop_views(SQLite::Database& connection) {
  SQLite::Statement names(connection, "SELECT name FROM sqlite_schema WHERE type = 'view'");
  std::string statements;
  while (names.executeStep()) statements += "DROP VIEW \"" + names.getColumn(0).getString() + "\";";
  names.reset();
  connection.exec(statements);
}

}  // namespace

void migrate(SQLite::Database& connection) {
  SQLite::Transaction transaction(connection, SQLite::TransactionBehavior::IMMEDIATE);
  const int found = connection.execAndGet("PRAGMA user_version").getInt();
  if (found == schema_version) return;
  drop_views(connection);
  for (const std::string_view step : migrations().subspan(static_cast<std::size_t>(found)))
    connection.exec(std::string(step));
  for (const std::string& view : views()) connection.exec(view);
  make_run_states(connection);
  connection.exec("PRAGMA application_id = " + std::to_string(application_id));
  connection.exec("PRAGMA user_version = " + std::to_string(schema_version));
  transaction.commit();
}

}  // namespace trainyard::db
