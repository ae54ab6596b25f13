// Aggregate functions that SQLite lacks, for the queries of users: `stddev(x)` and `median(x)`.
// - NULL values are left out. A text that is not a number is an error.
// - `stddev`: sample standard deviation (n - 1). NULL for fewer than two values, exactly 0 for equal values.
// - `median`: the middle value, or the mean of the two middle values. NULL without values.
#pragma once

struct sqlite3;

namespace trainyard::db {

void add_sql_functions(sqlite3* connection);

}  // namespace trainyard::db
