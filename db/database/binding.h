// Values into prepared statements. Everything that comes from a file reaches SQL through here: bound, never
// as text of a statement.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include <SQLiteCpp/Statement.h>
#include <nlohmann/json.hpp>

namespace trainyard::db {

// One line of JSON; bytes that are no UTF-8 become U+FFFD.
inline std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <std::integral T>
void bind_value(SQLite::Statement& statement, int index, T value) {
  statement.bind(index, static_cast<std::int64_t>(value));
}
inline void bind_value(SQLite::Statement& statement, int index, double value) {
  statement.bind(index, value);
}
inline void bind_value(SQLite::Statement& statement, int index, const std::string& value) {
  statement.bind(index, value);
}
inline void bind_value(SQLite::Statement& statement, int index, std::nullptr_t) {
  statement.bind(index);
}
inline void bind_value(SQLite::Statement& statement, int index, const nlohmann::json& value) {
  if (value.is_null())
    statement.bind(index);
  else
    statement.bind(index, json_text(value));
}
template <typename T>
void bind_value(SQLite::Statement& statement, int index, const std::optional<T>& value) {
  if (value)
    bind_value(statement, index, *value);
  else
    statement.bind(index);
}

// A prepared statement with its parameters bound; reset again, whatever happens, at the end of the scope.
class Bound {
 public:
  template <typename... Values>
  explicit Bound(SQLite::Statement& statement, const Values&... values) : statement_(statement) {
    statement_.tryReset();
    int index = 0;
    (bind_value(statement_, ++index, values), ...);
  }
  ~Bound() { statement_.tryReset(); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  bool next() { return statement_.executeStep(); }
  SQLite::Statement& row() { return statement_; }

 private:
  SQLite::Statement& statement_;
};

// Runs a statement that returns no rows; the number of rows changed.
template <typename... Values>
int execute(SQLite::Statement& statement, const Values&... values) {
  return Bound(statement, values...).row().exec();
}

}  // namespace trainyard::db
