#include "db/ingest/attempt_fault.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/database/statements.h"

namespace trainyard::db {

std::optional<AttemptFault> attempt_fault(const Database& database, const std::string& run_key, int attempt) {
  return translated(database.connection(), [&]() -> std::optional<AttemptFault> {
    SQLite::Statement statement(database.connection(), R"sql(
      SELECT of_attempt, of_rank, type, epoch, error FROM attempt_fault WHERE run_key = ? AND attempt = ?)sql");
    Bound rows(statement, run_key, attempt);
    if (!rows.next()) return std::nullopt;
    RowReader row(rows.row());
    AttemptFault fault;
    fault.attempt = static_cast<int>(row.integer());
    fault.rank = static_cast<int>(row.integer());
    fault.type = row.text();
    fault.epoch = row.integer();
    fault.error = row.text();
    return fault;
  });
}

}  // namespace trainyard::db
