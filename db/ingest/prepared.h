// Prepared statements of one connection, each made at its first use.
#pragma once

#include <cstdint>
#include <map>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

namespace trainyard::db {

class Prepared {
 public:
  explicit Prepared(SQLite::Database& connection) : connection_(connection) {}

  // `sql` is known by its address: a literal, or a text that lives as long.
  SQLite::Statement& operator()(const char* sql) {
    return statements_.try_emplace(sql, connection_, sql).first->second;
  }
  std::int64_t last_inserted_row() const { return connection_.getLastInsertRowid(); }

 private:
  SQLite::Database& connection_;
  std::map<const char*, SQLite::Statement> statements_;
};

}  // namespace trainyard::db
