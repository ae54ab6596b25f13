// Rows of `run` and `axis_value`: the resolved run behind a key. Written from journal entries, and from
// run.json where no journal entry knows the key.
#pragma once

#include <string>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <nlohmann/json.hpp>

namespace trainyard::db {

enum class RunOrigin { launch = 0, journal = 1 };  // a journal entry's run replaces one that a launch brought

class RunRows {
 public:
  explicit RunRows(SQLite::Database& connection);

  // `resolved` is the JSON of an `experiments::Run`; InternalError where it is not.
  void put(const std::string& key, const nlohmann::json& resolved, RunOrigin origin);

  // Deletes the run and everything below it.
  void remove(const std::string& key);

 private:
  void put_values(const std::string& key, const nlohmann::json& resolved);

  SQLite::Statement put_;
  SQLite::Statement clear_values_;
  SQLite::Statement put_value_;
  SQLite::Statement remove_;
};

}  // namespace trainyard::db
