// Columns of a result row as plain values; NaN and empty texts where they are NULL.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>

namespace trainyard::db {

inline double number_or_nan(const SQLite::Column& column) {
  return column.isNull() ? std::numeric_limits<double>::quiet_NaN() : column.getDouble();
}

// Reads the columns of the current row from the first to the last.
class RowReader {
 public:
  explicit RowReader(const SQLite::Statement& statement) : statement_(statement) {}
  std::string text() { return next().getString(); }
  std::int64_t integer() { return next().getInt64(); }
  double number() { return number_or_nan(next()); }
  double number_or_zero() { return next().getDouble(); }  // SQLite reads NULL as 0
  bool flag() { return next().getInt() != 0; }

 private:
  SQLite::Column next() { return statement_.getColumn(index_++); }
  const SQLite::Statement& statement_;
  int index_ = 0;
};

}  // namespace trainyard::db
