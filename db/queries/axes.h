// The resolved values of runs, by name and with their own types.
#pragma once

#include <map>
#include <string>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <nlohmann/json.hpp>

#include "db/database/statements.h"
#include "experiments/run/run.h"

namespace trainyard::db {

class Axes {
 public:
  explicit Axes(const SQLite::Database& connection)
      : statement_(connection, "SELECT name, json FROM axis_value WHERE run_key = ?") {}

  // The values of a run. "strategy" is `label`, its name in the experiment.
  std::map<std::string, Value> of(const std::string& run_key, const std::string& label) {
    std::map<std::string, Value> values;
    Bound rows(statement_, run_key);
    while (rows.next())
      values[rows.row().getColumn(0).getString()] =
          experiments::value_from_json(nlohmann::json::parse(rows.row().getColumn(1).getString()));
    values["strategy"] = label;
    return values;
  }

 private:
  SQLite::Statement statement_;
};

}  // namespace trainyard::db
