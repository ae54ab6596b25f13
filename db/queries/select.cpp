#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <new>
#include <string_view>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "base/error.h"
#include "db/database/schema.h"
#include "db/database/statements.h"
#include "db/queries/queries.h"

namespace trainyard::db {

using nlohmann::json;

namespace {

using Prepared = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

// Pragmas that only read, such as `PRAGMA table_info(run)`, and the functions of the same names.
constexpr std::array<std::string_view, 8> reading_pragmas{"table_info",       "table_xinfo",  "table_list",
                                                          "index_list",       "index_info",   "index_xinfo",
                                                          "foreign_key_list", "database_list"};

// The authorizer, which SQLite calls for every action of a statement, also at run time.
int allow_reading(void*, int action, const char* subject, const char* object, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return object && std::string_view(object) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
      return std::find(reading_pragmas.begin(), reading_pragmas.end(), subject) != reading_pragmas.end()
                 ? SQLITE_OK
                 : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

// Register the table-valued functions that SELECT may use. SQLite does this at their first use and then needs
// permission to create a table.
void connect_functions(sqlite3* connection) {
  std::string sql = "SELECT 1 FROM json_each('1'), json_tree('1')";
  for (const std::string_view name : reading_pragmas) sql.append(", pragma_").append(name);
  sqlite3_exec(connection, ("EXPLAIN " + sql).c_str(), nullptr, nullptr, nullptr);
}

constexpr int longest_value = 1 << 26;  // bytes of a text or blob

// A guard that allows only reading on the connection, and no longer values.
class ReadingOnly {
 public:
  explicit ReadingOnly(sqlite3* connection)
      : connection_(connection), length_(sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, longest_value)) {
    connect_functions(connection_);
    sqlite3_set_authorizer(connection_, allow_reading, nullptr);
  }
  ~ReadingOnly() {
    sqlite3_set_authorizer(connection_, nullptr, nullptr);
    sqlite3_limit(connection_, SQLITE_LIMIT_LENGTH, length_);
  }
  ReadingOnly(const ReadingOnly&) = delete;
  ReadingOnly& operator=(const ReadingOnly&) = delete;

 private:
  sqlite3* connection_;
  int length_;  // the limit before
};

[[noreturn]] void refuse_writing() {
  throw UserError("the statement writes, but `trainyard sql` only reads",
                  "use SELECT, or change a copy of the database with sqlite3");
}

[[noreturn]] void fail(sqlite3* connection) {
  const int code = sqlite3_errcode(connection);
  if (code == SQLITE_AUTH) refuse_writing();
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_FULL || code == SQLITE_IOERR)
    throw SQLite::Exception(connection, code);  // not a fault of the statement
  std::string text = sqlite3_errmsg(connection);
  std::replace(text.begin(), text.end(), '\n', ' ');
  throw UserError("SQL: " + text, "tables and views are described in db/README.md");
}

// The first statement of `sql`, empty if there are only comments. `rest` is the text after it.
Prepared prepare(sqlite3* connection, std::string_view sql, std::string_view& rest) {
  sqlite3_stmt* statement = nullptr;
  const char* tail = nullptr;
  if (sqlite3_prepare_v2(connection, sql.data(), static_cast<int>(sql.size()), &statement, &tail) !=
      SQLITE_OK)
    fail(connection);
  rest = sql.substr(static_cast<std::size_t>(tail - sql.data()));
  return {statement, sqlite3_finalize};
}

Prepared prepare_one(sqlite3* connection, std::string_view sql) {
  Prepared statement = prepare(connection, sql, sql);
  if (!statement) throw UserError("there is no statement", "for example: SELECT * FROM run_summary");
  while (!sql.empty() && sql.front() != '\0') {
    const std::size_t before = sql.size();
    if (prepare(connection, sql, sql))
      throw UserError("there is more than one statement", "give one statement at a time");
    if (sql.size() == before) break;
  }
  if (sqlite3_stmt_readonly(statement.get()) == 0) refuse_writing();
  return statement;
}

// A text as valid UTF-8. Other bytes become U+FFFD.
json text_value(std::string text) {
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 128; };
  if (std::all_of(text.begin(), text.end(), ascii)) return text;
  return json::parse(json_text(text));
}

json value_of(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return nullptr;
    case SQLITE_INTEGER:
      return static_cast<std::int64_t>(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const unsigned char*>(sqlite3_column_blob(statement, column));
      return fmt::format("X'{:02X}'", fmt::join(bytes, bytes + sqlite3_column_bytes(statement, column), ""));
    }
    default: {
      const unsigned char* text = sqlite3_column_text(statement, column);
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
      return text_value(std::string(reinterpret_cast<const char*>(text), size));
    }
  }
}

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

void add_sql_functions(sqlite3* connection) {
  add_aggregate(connection, "stddev", group_result<standard_deviation, 2>);
  add_aggregate(connection, "median", group_result<median_of, 1>);
}

// `bound`: the value of the parameter, if the statement has one.
void select_checked(sqlite3* connection, const std::string& sql, const std::string& bound,
                    const OnColumns& columns, const OnRow& row) {
  add_sql_functions(connection);
  const ReadingOnly reading_only(connection);
  const Prepared statement = prepare_one(connection, sql);
  if (!bound.empty())
    sqlite3_bind_text(statement.get(), 1, bound.data(), static_cast<int>(bound.size()), SQLITE_STATIC);
  const int count = sqlite3_column_count(statement.get());
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) names.emplace_back(sqlite3_column_name(statement.get(), i));
  columns(names);
  int outcome = SQLITE_ROW;
  while ((outcome = sqlite3_step(statement.get())) == SQLITE_ROW) {
    ExportRow values;
    for (int i = 0; i < count; ++i) values.push_back(value_of(statement.get(), i));
    if (!row(values)) return;
  }
  if (outcome != SQLITE_DONE) fail(connection);
}

const std::array<ExportedView, 5> views_of_export{
    {{"epochs", "epoch_average", "one row per run and epoch, over all replicas", "run_key, epoch"},
     {"ranks", "epoch_rank", "one row per run, epoch and rank", "run_key, epoch, rank"},
     {"final", "task_final_metrics", "one row per finished run: the numbers of the verdicts", "run_key"},
     {"runs", "run_summary", "one row per run: status, times, circumstances", "run_key"},
     {"times", "time_parts", "one row per finished run: the parts of its epochs' time", "run_key"}}};

// A comma and a column for each axis that the experiment varies. task_final_metrics already has all of them.
std::string axis_columns_of(const SQLite::Database& connection, const std::string& view,
                            const std::string& experiment) {
  if (view == "task_final_metrics") return "";
  std::vector<std::string> taken;
  const SQLite::Statement columns(connection, "SELECT * FROM " + view);
  taken.reserve(static_cast<std::size_t>(columns.getColumnCount()));
  for (int i = 0; i < columns.getColumnCount(); ++i) taken.emplace_back(columns.getColumnName(i));
  std::string text;
  for (const AxisColumn& column : axis_columns(varying_axes(connection, experiment), taken))
    text += fmt::format(", {} AS {}", axis_value_sql(column.axis), quoted_identifier(column.name));
  return text;
}

}  // namespace

void select_rows(const Database& database, const std::string& sql, const OnColumns& columns,
                 const OnRow& row) {
  translated(database.connection(),
             [&] { select_checked(database.connection().getHandle(), sql, "", columns, row); });
}

ResultTable select(const Database& database, const std::string& sql) {
  ResultTable table;
  select_rows(
      database, sql, [&](const auto& names) { table.columns = names; },
      [&](const ExportRow& row) {
        table.rows.push_back(row);
        return true;
      });
  return table;
}

std::span<const ExportedView> exported_views() {
  return views_of_export;
}

void export_rows(const Database& database, const ExportedView& view, const std::string& experiment,
                 const OnColumns& columns, const OnRow& row) {
  translated(database.connection(), [&] {
    const std::string sql =
        fmt::format("SELECT v.*{} FROM {} v WHERE v.experiment = ? ORDER BY {}",
                    axis_columns_of(database.connection(), view.view, experiment), view.view, view.order);
    select_checked(database.connection().getHandle(), sql, experiment, columns, row);
  });
}

}  // namespace trainyard::db
