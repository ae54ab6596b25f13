// Prepared SQLite statements: binding of values, reading of rows, and errors as UserError or InternalError.
// Every value from a file is bound, and never becomes part of the SQL text.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <nlohmann/json.hpp>

#include "db/database/database.h"

namespace trainyard::db {

// One line of JSON. Bytes that are not UTF-8 become U+FFFD.
inline std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Binds a number, a text, JSON or an optional value. Null, an empty optional and JSON's null are NULL.
template <typename T>
void bind_value(SQLite::Statement& statement, int index, const T& value) {
  if constexpr (std::is_null_pointer_v<T>)
    statement.bind(index);
  else if constexpr (std::integral<T>)
    statement.bind(index, static_cast<std::int64_t>(value));
  else if constexpr (std::same_as<T, nlohmann::json>)
    value.is_null() ? statement.bind(index) : statement.bind(index, json_text(value));
  else if constexpr (requires { value.has_value(); })
    value ? bind_value(statement, index, *value) : statement.bind(index);
  else
    statement.bind(index, value);
}

// A prepared statement with bound parameters. The destructor resets it.
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

// Run a statement that returns no rows. Returns the number of changed rows.
template <typename... Values>
int execute(SQLite::Statement& statement, const Values&... values) {
  return Bound(statement, values...).row().exec();
}
// The same for values in a tuple. Those of a braced list are evaluated in their order.
template <typename... Values>
int execute(SQLite::Statement& statement, const std::tuple<Values...>& all) {
  return std::apply([&](const Values&... values) { return execute(statement, values...); }, all);
}

// Prepared statements of one connection, each made at its first use.
class Prepared {
 public:
  explicit Prepared(SQLite::Database& connection) : connection_(connection) {}

  // `sql` is known by its address: a literal, or a text that lives as long.
  SQLite::Statement& operator()(const char* sql) {
    return statements_.try_emplace(sql, connection_, sql).first->second;
  }
  // `sql` gives the text.
  SQLite::Statement& operator()(std::string (*sql)()) {
    const auto found = made_.find(sql);
    return found != made_.end() ? found->second : made_.try_emplace(sql, connection_, sql()).first->second;
  }
  std::int64_t last_inserted_row() const { return connection_.getLastInsertRowid(); }

 private:
  SQLite::Database& connection_;
  std::map<const char*, SQLite::Statement> statements_;
  std::map<std::string (*)(), SQLite::Statement> made_;
};

// SQLite reads NULL as 0, so most values need only one call.
inline double number_or_nan(const SQLite::Column& column) {
  const double number = column.getDouble();
  return number == 0 && column.isNull() ? std::numeric_limits<double>::quiet_NaN() : number;
}

// Reader of the current row, one column after the other. NULL is NaN, 0, false or an empty text.
class RowReader {
 public:
  explicit RowReader(const SQLite::Statement& statement) : statement_(statement) {}
  std::string text() { return next().getString(); }
  std::int64_t integer() { return next().getInt64(); }
  double number() { return number_or_nan(next()); }
  bool flag() { return next().getInt() != 0; }

  // The next column as a value of this type, or two columns as a pair.
  template <typename T>
  T value() {
    if constexpr (requires { typename T::first_type; })
      return T{value<std::remove_const_t<typename T::first_type>>(), value<typename T::second_type>()};
    else if constexpr (std::same_as<T, bool>)
      return flag();
    else if constexpr (std::integral<T>)
      return static_cast<T>(integer());
    else if constexpr (std::same_as<T, double>)
      return number();
    else
      return text();
  }
  // Sets each of them from one column.
  template <typename... T>
  void into(T&... targets) {
    ((targets = value<T>()), ...);
  }

 private:
  SQLite::Column next() { return statement_.getColumn(index_++); }
  const SQLite::Statement& statement_;
  int index_ = 0;
};

// What the user can do about a SQLite error of the machine or the file. Null for a bug in trainyard.
const char* advice_for(int code);

// Throw a SQLite error as StorageError if the user can fix it (disk full, no permission, damaged or locked
// file), else as InternalError. Both name the database file.
[[noreturn]] void rethrow(const SQLite::Exception& error, const SQLite::Database& connection);

// Run `work` and rethrow its SQLite errors.
template <typename Work>
auto translated(const SQLite::Database& connection, Work&& work) -> decltype(std::forward<Work>(work)()) {
  try {
    return std::forward<Work>(work)();
  } catch (const SQLite::Exception& error) {
    rethrow(error, connection);
  }
}

// What `read` makes of each row of a query.
template <typename Read, typename... Values>
auto read_rows(const Database& database, const std::string& sql, Read&& read, const Values&... values) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(), sql);
    std::vector<decltype(read(RowReader(statement)))> found;
    for (Bound rows(statement, values...); rows.next();) found.push_back(read(RowReader(statement)));
    return found;
  });
}

// All rows of a query in a container: of one column, or of two as pairs.
template <typename Container, typename... Values>
Container read_all(const SQLite::Database& connection, const std::string& sql, const Values&... values) {
  SQLite::Statement statement(connection, sql);
  Container found;
  for (Bound rows(statement, values...); rows.next();)
    found.insert(found.end(), RowReader(statement).value<typename Container::value_type>());
  return found;
}
template <typename Container, typename... Values>
Container read_all(const Database& database, const std::string& sql, const Values&... values) {
  return translated(database.connection(),
                    [&] { return read_all<Container>(database.connection(), sql, values...); });
}

}  // namespace trainyard::db
