// The schema of results.db: tables, indices and views. `Database::open_for_writing` creates it. There are no
// migrations: a database of another schema is rebuilt from the yard's files (db/ingest/maintenance.h).
// db/README.md documents every table and view.
#pragma once

namespace SQLite {
class Database;
}
namespace trainyard::db {

// `PRAGMA application_id` of every results database: "TYRD".
inline constexpr int application_id = 0x54595244;

// Create tables and views in an empty database, in one transaction. Does nothing if another process has just
// created them.
void make_schema(SQLite::Database& connection);

}  // namespace trainyard::db
