#include "db/ingest/kept_rows.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include "base/text.h"
#include "db/database/run_states.h"
#include "db/database/statements.h"
#include "experiments/protocol/record.h"

namespace trainyard::db {

namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::string>;
using Place = std::pair<std::string, std::int64_t>;  // run and attempt

bool has(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

const Names& journal_tables() {
  static const Names names{"journal",        "journal_key", "experiment",
                           "experiment_run", "removed",     "earlier_result"};
  return names;
}

Names tables(SQLite::Database& rebuilt) {
  return read_all<Names>(
      rebuilt,
      "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
      "ORDER BY name");
}

// Columns that are not computed by SQLite.
Names columns(SQLite::Database& rebuilt, const std::string& table) {
  return read_all<Names>(rebuilt, "SELECT '\"' || name || '\"' FROM pragma_table_info('" + table + "')");
}

// Whether the rows of `table` belong to single attempts.
bool is_of_attempts(const std::string& table, const Names& its_columns) {
  return has(its_columns, "\"attempt\"") && table != "run_state" && table != "attempt_chain" &&
         !has(journal_tables(), table);
}

// `values`: those of the parameters of `where`.
template <typename... Values>
void copy(SQLite::Database& rebuilt, const std::string& table, const std::string& where = "TRUE",
          const Values&... values) {
  const std::string list = joined(columns(rebuilt, table));
  SQLite::Statement statement(rebuilt, "INSERT OR IGNORE INTO main." + table + " (" + list + ") SELECT " +
                                           list + " FROM held." + table + " WHERE " + where);
  execute(statement, values...);
}

// "FILE has 3 of 6 records" for each file of the attempt that is not whole.
std::string lack_of(SQLite::Database& rebuilt, const fs::path& folder, const std::string& run_key,
                    std::int64_t attempt) {
  SQLite::Statement ranks(rebuilt, R"sql(
    SELECT h.rank, COALESCE(m.next_seq, 0), h.next_seq
    FROM held.record_log h LEFT JOIN main.record_log m USING (run_key, attempt, rank)
    WHERE run_key = ? AND attempt = ? AND h.next_seq > COALESCE(m.next_seq, 0) ORDER BY rank)sql");
  Names lacks;
  for (Bound rows(ranks, run_key, attempt); rows.next();) {
    RowReader row(rows.row());
    const auto rank = static_cast<int>(row.integer());
    const std::int64_t in_file = row.integer(), in_database = row.integer();
    const fs::path file =
        folder / (rank < 0 ? experiments::orchestrator_records_name : experiments::rank_records_name(rank));
    lacks.push_back(file.string() +
                    (fs::exists(fs::symlink_status(file)) ? " has " : " is missing and has ") +
                    std::to_string(in_file) + " of " + counted(in_database, "record"));
  }
  return lacks.empty() ? (folder / experiments::run_file_name).string() + " is missing or damaged"
                       : joined(lacks);
}

constexpr const char* keeps_rows = ". A rebuild keeps the rows of the database";

}  // namespace

std::string keep_journal_rows(SQLite::Database& rebuilt, const fs::path& yard, bool damaged) {
  const auto count = [&](const char* rows) {
    return rebuilt.execAndGet(std::string("SELECT COUNT(*) FROM ") + rows).getInt64();
  };
  const std::int64_t in_database = count("held.journal");
  const std::int64_t in_both = count("held.journal JOIN main.journal USING (sha256)");
  if (in_both == in_database || (!damaged && count("main.journal") >= in_database)) return "";
  rebuilt.exec("PRAGMA defer_foreign_keys = ON");
  for (const std::string& table : journal_tables()) rebuilt.exec("DELETE FROM main." + table);
  rebuilt.exec("DELETE FROM main.run");
  for (const std::string& table : journal_tables()) copy(rebuilt, table);
  copy(rebuilt, "run", "from_journal = 1");
  copy(rebuilt, "axis_value", "run_key IN (SELECT run_key FROM main.run)");
  return (yard / "journal.jsonl").string() + " has " + std::to_string(in_both) + " of " +
         counted(in_database, "line") + keeps_rows;
}

std::vector<std::string> keep_attempt_rows(SQLite::Database& rebuilt, const fs::path& yard) {
  const auto attempts = read_all<std::vector<Place>>(rebuilt, R"sql(
    SELECT a.run_key, a.attempt FROM held.attempt a
    WHERE NOT EXISTS (SELECT 1 FROM main.removed r WHERE r.run_key = a.run_key AND r.up_to_attempt >= a.attempt)
      AND (NOT EXISTS (SELECT 1 FROM main.attempt m WHERE m.run_key = a.run_key AND m.attempt = a.attempt)
           OR EXISTS (SELECT 1 FROM held.record_log h LEFT JOIN main.record_log m USING (run_key, attempt, rank)
                      WHERE h.run_key = a.run_key AND h.attempt = a.attempt
                        AND h.next_seq > COALESCE(m.next_seq, 0)))
    ORDER BY 1, 2)sql");
  RunStates states(rebuilt);
  std::vector<std::string> lines;
  for (const auto& [run_key, attempt] : attempts) {
    const fs::path folder = yard / "runs" / run_key / ("attempt-" + std::to_string(attempt));
    lines.push_back("attempt " + std::to_string(attempt) + " of run " + run_key + ": " +
                    lack_of(rebuilt, folder, run_key, attempt) + keeps_rows);
    SQLite::Statement remove(rebuilt, "DELETE FROM main.attempt WHERE run_key = ? AND attempt = ?");
    execute(remove, run_key, attempt);
    rebuilt.exec("PRAGMA defer_foreign_keys = ON");
    for (const char* table : {"run", "axis_value"}) copy(rebuilt, table, "run_key = ?", run_key);
    for (const std::string& table : tables(rebuilt))
      if (is_of_attempts(table, columns(rebuilt, table)))
        copy(rebuilt, table, "run_key = ? AND attempt = ?", run_key, attempt);
    states.changed(run_key);
  }
  states.refresh();
  return lines;
}

std::vector<std::string> differing_schema(SQLite::Database& rebuilt, bool with_views) {
  const std::string types = with_views ? "" : " AND type = 'table'";
  const Names names = read_all<Names>(
      rebuilt,
      "SELECT name FROM (SELECT type, name, sql FROM main.sqlite_schema WHERE name NOT LIKE 'sqlite_%'" +
          types + " EXCEPT SELECT type, name, sql FROM held.sqlite_schema) ORDER BY name");
  if (names.empty()) return {};
  return {"the database has another definition of " + joined(names) + ". A rebuild takes the files"};
}

std::vector<std::string> differing_rows(SQLite::Database& rebuilt) {
  std::map<Place, Names> differing;  // tables by run and attempt
  for (const std::string& table : tables(rebuilt)) {
    const Names compared = columns(rebuilt, table);
    const std::string place = has(journal_tables(), table)      ? "'', 0"
                              : is_of_attempts(table, compared) ? "run_key, attempt"
                                                                : "run_key, 0";
    const auto rows_of = [&](const char* side) {
      return "SELECT " + joined(compared) + " FROM " + side + "." + table;
    };
    const std::string sql = fmt::format(
        "SELECT DISTINCT {0} FROM (SELECT * FROM ({1} EXCEPT {2}) UNION ALL SELECT * FROM ({2} EXCEPT {1}))",
        place, rows_of("main"), rows_of("held"));
    for (const Place& differs : read_all<std::vector<Place>>(rebuilt, sql))
      differing[differs].push_back(table);
  }
  std::vector<std::string> lines;
  for (const auto& [place, names] : differing) {
    const auto& [run_key, attempt] = place;
    lines.push_back((run_key.empty() ? "the journal"
                     : attempt == 0  ? "run " + run_key
                                     : "attempt " + std::to_string(attempt) + " of run " + run_key) +
                    ": the database has other rows of " + joined(names) + ". A rebuild takes the files");
  }
  return lines;
}

}  // namespace trainyard::db
