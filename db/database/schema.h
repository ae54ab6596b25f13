// The schema of results.db: tables by numbered forward migrations (`user_version`), views for people made
// anew after each migration. `Database::open_for_writing` is the one user; db/README.md documents every table
// and view.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace SQLite {
class Database;
}

namespace trainyard::db {

// `PRAGMA application_id` of every results database: "TYRD".
inline constexpr int application_id = 0x54595244;

// What brings a database from version n (its place in the table, from 0) to n + 1.
std::span<const std::string_view> migrations();

// All views, each as one CREATE VIEW statement, in an order in which they can be made.
std::vector<std::string> views();

// Brings an open database forward to `schema_version` in one transaction; nothing to do where it is there.
// UserError where its tables are not those of the version that it is marked with; it is left as it was.
void migrate(SQLite::Database& connection);

}  // namespace trainyard::db
