// The schema of results.db: its tables and indices in one text, and its views. `Database::open_for_writing`
// makes it. There are no migrations: a database of an older schema is made again from the yard's files
// (db/ingest/maintenance.h). db/README.md documents every table and view.
#pragma once

namespace SQLite {
class Database;
}
namespace trainyard::db {

// `PRAGMA application_id` of every results database: "TYRD".
inline constexpr int application_id = 0x54595244;

// Makes tables and views in an empty database, in one transaction. Does nothing if another process has just
// made them.
void make_schema(SQLite::Database& connection);

}  // namespace trainyard::db
