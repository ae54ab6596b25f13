#include "db/queries/sql_functions.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include <SQLiteCpp/Exception.h>
#include <sqlite3.h>

namespace trainyard::db {

namespace {

// The values of one group. SQLite gives each group a pointer, which is null before the first value.
using GroupValues = std::vector<double>;

GroupValues** group_values(sqlite3_context* context, int bytes) {
  return static_cast<GroupValues**>(sqlite3_aggregate_context(context, bytes));
}

void add_value(sqlite3_context* context, int, sqlite3_value** arguments) {
  const int type = sqlite3_value_numeric_type(arguments[0]);
  if (type == SQLITE_NULL) return;
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
    return sqlite3_result_error(context, "stddev and median need numbers", -1);
  GroupValues** values = group_values(context, sizeof(GroupValues*));
  try {
    if (values == nullptr) throw std::bad_alloc();
    if (*values == nullptr) *values = new GroupValues;
    (*values)->push_back(sqlite3_value_double(arguments[0]));
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

// Welford's algorithm: equal values give exactly 0.
double standard_deviation(GroupValues& values) {
  double mean = 0, squares = 0, count = 0;
  for (const double value : values) {
    const double before = value - mean;
    mean += before / ++count;
    squares += before * (value - mean);
  }
  return std::sqrt(squares / (count - 1));
}

double median_of(GroupValues& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

// Gives the result of the group and frees its values.
template <double (*result)(GroupValues&), std::size_t fewest>
void group_result(sqlite3_context* context) {
  GroupValues** values = group_values(context, 0);
  if (values == nullptr || *values == nullptr) return;  // no value: NULL
  if ((*values)->size() >= fewest) sqlite3_result_double(context, result(**values));
  delete *values;
}

void add_aggregate(sqlite3* connection, const char* name, void (*end)(sqlite3_context*)) {
  const int code =
      sqlite3_create_function_v2(connection, name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                 nullptr, nullptr, add_value, end, nullptr);
  if (code != SQLITE_OK) throw SQLite::Exception(connection, code);
}

}  // namespace

void add_sql_functions(sqlite3* connection) {
  add_aggregate(connection, "stddev", group_result<standard_deviation, 2>);
  add_aggregate(connection, "median", group_result<median_of, 1>);
}

}  // namespace trainyard::db
