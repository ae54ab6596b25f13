#include "db/ingest/attempt_fault.h"

#include <cmath>

#include <SQLiteCpp/SQLiteCpp.h>

#include "base/text.h"
#include "db/database/record_faults.h"
#include "db/database/statements.h"

namespace trainyard::db {

namespace {

// The fault of the first row: attempt, rank, type and epoch of the record, the error, and the record's seq.
std::optional<AttemptFault> first_fault(const Database& database, const std::string& sql,
                                        const std::string& run_key, int attempt) {
  const auto fault_of = [](RowReader row) {
    AttemptFault fault;
    fault.attempt = static_cast<int>(row.integer());
    fault.rank = static_cast<int>(row.integer());
    fault.type = row.text();
    fault.epoch = row.integer();
    fault.error = printable_line(row.text());
    if (const double seq = row.number(); !std::isnan(seq)) fault.seq = static_cast<std::int64_t>(seq);
    return fault;
  };
  const auto found = read_rows(database, sql, fault_of, run_key, attempt);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

}  // namespace

std::optional<AttemptFault> attempt_fault(const Database& database, const std::string& run_key, int attempt) {
  return first_fault(database, R"sql(
    SELECT f.of_attempt, f.of_rank, f.type, f.epoch, f.error, (
      SELECT MIN(e.seq) FROM extra_record e
      WHERE e.run_key = f.run_key AND e.attempt = f.of_attempt AND e.rank = f.of_rank
        AND e.problem IS NOT NULL AND INSTR(f.error, '(seq ' || e.seq || ')'))
    FROM attempt_fault f WHERE f.run_key = ? AND f.attempt = ?)sql",
                     run_key, attempt);
}

std::optional<AttemptFault> fault_at_close(const Database& database, const std::string& run_key,
                                           int attempt) {
  if (auto fault = attempt_fault(database, run_key, attempt)) return fault;
  return first_fault(
      database,
      std::string("SELECT x.attempt, x.rank, x.type, 0, ") + record_problem +
          ", x.seq FROM extra_record x WHERE x.run_key = ? AND x.attempt = ? AND x.problem = '" +
          impossible::after_end + "' ORDER BY x.rank, x.seq LIMIT 1",
      run_key, attempt);
}

}  // namespace trainyard::db
