#include "db/run_states.h"

#include "db/binding.h"

namespace trainyard::db {

namespace {

// The attempt that counts (the latest finished one, else the latest) and those that it resumes, each with the
// epochs after_epoch + 1 … up_to_epoch that it contributes. An attempt can only resume an earlier one: the
// recursion ends.
constexpr const char* put_chain = R"sql(
INSERT INTO attempt_chain (run_key, attempt, after_epoch, up_to_epoch)
WITH RECURSIVE chain (attempt, up_to_epoch) AS (
  SELECT attempt, 9223372036854775807
  FROM (SELECT attempt FROM attempt_status WHERE run_key = ?1
        ORDER BY status = 'finished' DESC, attempt DESC LIMIT 1)
  UNION ALL
  SELECT a.resumes_attempt, MIN(c.up_to_epoch, COALESCE(a.resumes_after_epoch, 0))
  FROM chain c JOIN attempt a ON a.run_key = ?1 AND a.attempt = c.attempt
  WHERE a.resumes_attempt < a.attempt
)
SELECT ?1, c.attempt, IIF(a.resumes_attempt < a.attempt, COALESCE(a.resumes_after_epoch, 0), 0), c.up_to_epoch
FROM chain c JOIN attempt a ON a.run_key = ?1 AND a.attempt = c.attempt)sql";

// While a run is not finished, an epoch counts only when all ranks have written it. An attempt that was
// resumed took the time until the epoch from which it was (`before`). Times count where those of all attempts
// of the chain do, under the same circumstances.
constexpr const char* put_state = R"sql(
INSERT INTO run_state (run_key, attempt, status, attempts, epochs_done, total_train_seconds, total_seconds,
                       test_accuracy, failure, updated, times_count)
WITH counted AS (
  SELECT attempt, status FROM attempt_status WHERE run_key = ?1
  ORDER BY status = 'finished' DESC, attempt DESC LIMIT 1
), done AS (
  SELECT MAX(e.train_seconds) AS train_seconds
  FROM attempt_chain k JOIN attempt a ON a.run_key = ?1 AND a.attempt = k.attempt
  JOIN epoch e ON e.run_key = ?1 AND e.attempt = k.attempt AND e.epoch > k.after_epoch AND e.epoch <= k.up_to_epoch
  WHERE k.run_key = ?1
  GROUP BY e.epoch, e.attempt
  HAVING (SELECT status FROM counted) = 'finished' OR COUNT(*) >= a.world_size
), before AS (
  SELECT MAX(e.elapsed_seconds) AS seconds
  FROM attempt_chain k JOIN epoch e ON e.run_key = ?1 AND e.attempt = k.attempt AND e.epoch = k.up_to_epoch
  WHERE k.run_key = ?1
  GROUP BY e.attempt
)
SELECT ?1, c.attempt, c.status, (SELECT COUNT(*) FROM attempt WHERE run_key = ?1),
  (SELECT COUNT(*) FROM done), (SELECT SUM(train_seconds) FROM done),
  s.total_seconds + COALESCE((SELECT SUM(seconds) FROM before), 0),
  (SELECT IIF(COUNT(x.sum) = COUNT(*), SUM(x.sum) / NULLIF(SUM(x.weight), 0), NULL) FROM metric x
   WHERE x.run_key = ?1 AND x.attempt = c.attempt AND x.epoch = 0 AND x.phase = 'test' AND x.name = 'correct'),
  s.failure,
  COALESCE((SELECT MAX(o.last_time) FROM spool o WHERE o.run_key = ?1),
           (SELECT MAX(a.created) FROM attempt a WHERE a.run_key = ?1)),
  (SELECT MIN(a.times_count) AND COUNT(DISTINCT a.circumstances_hash) = 1
   FROM attempt_chain k JOIN attempt a ON a.run_key = ?1 AND a.attempt = k.attempt WHERE k.run_key = ?1)
FROM counted c JOIN attempt_summary s ON s.run_key = ?1 AND s.attempt = c.attempt)sql";

}  // namespace

RunStates::RunStates(SQLite::Database& connection)
    : clear_chain_(connection, "DELETE FROM attempt_chain WHERE run_key = ?"),
      put_chain_(connection, put_chain),
      clear_state_(connection, "DELETE FROM run_state WHERE run_key = ?"),
      put_state_(connection, put_state) {}

void RunStates::refresh() {
  for (const std::string& run_key : changed_) refresh(run_key);
  changed_.clear();
}

void RunStates::refresh(const std::string& run_key) {
  execute(clear_chain_, run_key);
  execute(put_chain_, run_key);
  execute(clear_state_, run_key);
  execute(put_state_, run_key);
}

void make_run_states(SQLite::Database& connection) {
  RunStates states(connection);
  SQLite::Statement keys(connection, "SELECT run_key FROM run");
  while (keys.executeStep()) states.changed(keys.getColumn(0).getString());
  states.refresh();
}

}  // namespace trainyard::db
