#include "db/queries/resumable.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/database/attempt_chain.h"
#include "db/database/binding.h"
#include "db/database/errors.h"
#include "db/database/rows.h"

namespace trainyard::db {

namespace {

constexpr const char* attempts_after_the_last_finished = R"sql(
SELECT attempt, circumstances FROM attempt
WHERE run_key = ?1 AND attempt > COALESCE(
  (SELECT MAX(attempt) FROM attempt_status WHERE run_key = ?1 AND status = 'finished'), 0)
AND attempt > COALESCE((SELECT MAX(attempt) FROM attempt_fault WHERE run_key = ?1), 0)
ORDER BY attempt)sql";

// Of attempt ?2 and what it resumes, each epoch that all ranks have written.
std::string whole_epochs() {
  return "WITH RECURSIVE " + attempt_chain_from_last() + R"sql(
SELECT e.epoch
FROM chain c JOIN attempt a ON a.run_key = ?1 AND a.attempt = c.attempt
JOIN attempt_epoch e ON e.run_key = ?1 AND e.attempt = c.attempt AND e.epoch > c.after_epoch
  AND e.epoch <= c.up_to_epoch
WHERE e.ranks >= a.world_size
ORDER BY e.epoch)sql";
}

constexpr const char* recorded_checkpoints = R"sql(
SELECT json_extract(body, '$.epoch') FROM extra_record
WHERE run_key = ? AND attempt = ? AND rank = 0 AND type = 'checkpoint' AND json_type(body, '$.epoch') = 'integer'
ORDER BY seq)sql";

}  // namespace

std::vector<ResumableAttempt> resumable_attempts(const Database& database, const std::string& run_key) {
  return translated(database.connection(), [&] {
    SQLite::Statement attempts(database.connection(), attempts_after_the_last_finished);
    SQLite::Statement epochs(database.connection(), whole_epochs());
    SQLite::Statement checkpoints(database.connection(), recorded_checkpoints);
    std::vector<ResumableAttempt> found;
    Bound rows(attempts, run_key);
    while (rows.next()) {
      RowReader row(rows.row());
      ResumableAttempt attempt;
      attempt.attempt = static_cast<int>(row.integer());
      attempt.circumstances = experiments::circumstances_from_json(nlohmann::json::parse(row.text()));
      Bound whole(epochs, run_key, attempt.attempt);
      while (whole.next() && whole.row().getColumn(0).getInt64() == attempt.whole_epochs + 1)
        ++attempt.whole_epochs;
      Bound recorded(checkpoints, run_key, attempt.attempt);
      while (recorded.next()) attempt.checkpoints.push_back(recorded.row().getColumn(0).getInt64());
      found.push_back(std::move(attempt));
    }
    return found;
  });
}

std::set<std::string> runs_with_nothing_to_resume(const Database& database) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(), R"sql(
      SELECT run_key FROM run_state s
      WHERE status = 'finished' AND attempt = (SELECT MAX(attempt) FROM attempt a WHERE a.run_key = s.run_key))sql");
    std::set<std::string> found;
    Bound rows(statement);
    while (rows.next()) found.insert(rows.row().getColumn(0).getString());
    return found;
  });
}

}  // namespace trainyard::db
