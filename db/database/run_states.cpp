#include "db/database/run_states.h"

#include <fmt/format.h>

#include "db/database/metric_sql.h"
#include "db/database/statements.h"

namespace trainyard::db {

namespace {

// The effective attempt: the latest finished one, else the latest.
constexpr const char* find_counted = R"sql(
SELECT attempt, status FROM attempt_status WHERE run_key = ? ORDER BY status = 'finished' DESC, attempt DESC LIMIT 1
)sql";

// The first finished rank whose epochs and test account for less than 80 % of its time, with more than 0.5 s
// missing: docs/other-processes.md. Its time begins with `start` and the stated set-up, or with the first epoch
// if that is earlier. Our own ranks and resumed ones begin with the first epoch: before it, they compare with
// the reference or read checkpoints. Writing checkpoints does not count.
constexpr const char* unaccounted = R"sql(
SELECT printf('rank %d recorded only %.3g s of the %.3g s between its start and its end; at least 80 %% is required',
              rank, stated, whole)
FROM (SELECT p.rank, COALESCE(p.test_seconds, 0) + e.stated AS stated,
    p.ended_elapsed - COALESCE((
      SELECT SUM(MAX(0, (c.body ->> '$.elapsed_seconds') - x.elapsed_seconds))
      FROM extra_record c JOIN epoch x ON x.run_key = c.run_key AND x.attempt = c.attempt AND x.rank = c.rank
        AND x.epoch = c.body ->> '$.epoch'
      WHERE c.run_key = p.run_key AND c.attempt = p.attempt AND c.rank = 0 AND c.type = 'checkpoint'), 0)
    - IIF(r.strategy_kind = 'foreign' AND attempt.resumes_attempt IS NULL AND p.started IS NOT NULL,
          MIN(e.begin, p.started_elapsed + COALESCE(p.setup_seconds, 0)), e.begin) AS whole
  FROM process p JOIN run r ON r.run_key = p.run_key
  JOIN (SELECT rank, MIN(elapsed_seconds - train_seconds - COALESCE(validation_seconds, 0)) AS begin,
          SUM(train_seconds + COALESCE(validation_seconds, 0)) AS stated, COUNT(train_seconds) = COUNT(*) AS timed
        FROM epoch WHERE run_key = attempt.run_key AND attempt = attempt.attempt GROUP BY rank) e
    ON e.rank = p.rank AND e.timed
  WHERE p.run_key = attempt.run_key AND p.attempt = attempt.attempt AND p.status = 'finished')
WHERE stated < 0.8 * whole AND whole - stated > 0.5 ORDER BY rank LIMIT 1)sql";

// The first rank on cores whose training took over 20 % longer than its processor time, its waits for other ranks
// and what other processes took, and over 0.5 s longer: docs/other-processes.md.
constexpr const char* stopped = R"sql(
SELECT printf('rank %d trained for %.3g s, but processor time, waits and other processes explain only %.3g s: it was probably stopped',
              rank, trained, explained)
FROM (SELECT e.rank, SUM(e.train_seconds) AS trained, COUNT(e.processor_seconds) = COUNT(*) AS known,
    SUM(e.processor_seconds + COALESCE(e.exposed_communication_seconds, 0)
        + COALESCE(e.bubble_seconds, 0))
    + (SELECT u.extra ->> '$.other_seconds' FROM event u
       WHERE u.run_key = attempt.run_key AND u.attempt = attempt.attempt AND u.type = 'processor_use'
       ORDER BY u.seq DESC LIMIT 1) AS explained
  FROM epoch e JOIN process p ON p.run_key = e.run_key AND p.attempt = e.attempt AND p.rank = e.rank
  WHERE e.run_key = attempt.run_key AND e.attempt = attempt.attempt AND p.status = 'finished'
    AND p.device LIKE 'cpu%' GROUP BY e.rank)
WHERE known AND NOT attempt.devices_shared AND trained > 1.2 * explained AND trained - explained > 0.5 ORDER BY rank LIMIT 1)sql";

// What other processes took while the epochs of attempt ?2 of run ?1 trained: docs/other-processes.md.
// - Less than 0.02 s per core disturbs no epoch, because ticks of 10 ms cannot measure it.
constexpr const char* put_epoch_use = R"sql(
UPDATE attempt_epoch SET other_share = u.share,
  disturbed = COALESCE(u.share > u.most AND u.others > 0.02 * u.cores, 0)
FROM (SELECT LAG(up_to, 1, 0) OVER (ORDER BY up_to) AS after, up_to, others, cores, most,
        others / (cores * seconds) AS share
      FROM (SELECT CAST(value ->> '$[0]' AS INTEGER) AS up_to, CAST(value ->> '$[1]' AS REAL) AS seconds,
              CAST(value ->> '$[2]' AS REAL) AS others, CAST(e.extra ->> '$.cores' AS REAL) AS cores,
              CAST(e.extra ->> '$.limit' AS REAL) AS most
            FROM event e, json_each(e.extra, '$.epochs') m
            WHERE e.run_key = ?1 AND e.attempt = ?2 AND e.type = 'processor_use' AND m.type = 'array')) u
WHERE run_key = ?1 AND attempt = ?2 AND epoch > u.after AND epoch <= u.up_to
)sql";

// Set the first reason why the times of an attempt do not count.
std::string put_times_problem() {
  return std::string(R"sql(
UPDATE attempt SET
  (other_share, others_limit) = (
    SELECT e.extra ->> '$.other_share', e.extra ->> '$.limit' FROM event e
    WHERE e.run_key = attempt.run_key AND e.attempt = attempt.attempt AND e.type = 'processor_use'
    ORDER BY e.seq DESC LIMIT 1),
  times_problem = COALESCE(launch ->> '$.membership.cause', CASE WHEN launch ->> '$.times_needed' = 0 THEN ')sql") +
         times_not_needed + R"sql(' WHEN NOT host_exclusive AND launch ->> '$.circumstances.release' = '' THEN
      'it was recorded without trainyard run, so the load of the host is not known'
    WHEN NOT host_exclusive THEN 'other runs shared the host' END,
    (SELECT e.why FROM event e
     WHERE e.run_key = attempt.run_key AND e.attempt = attempt.attempt AND e.type = 'processor_use'
     ORDER BY e.seq DESC LIMIT 1),
    CASE WHEN EXISTS (SELECT 1 FROM process p WHERE p.run_key = attempt.run_key AND p.attempt = attempt.attempt
                        AND p.status = 'finished') THEN COALESCE(()sql" +
         unaccounted + "), (" + stopped + R"sql()) END)
WHERE run_key = ?1
)sql";
}

// Parameters of the statements below: ?1 the run, ?2 its effective attempt, ?3 its status.
std::string put_chain() {
  return "INSERT INTO attempt_chain (run_key, attempt, after_epoch, up_to_epoch) WITH RECURSIVE " +
         attempt_chain_from_last() + " SELECT ?1, attempt, after_epoch, up_to_epoch FROM chain";
}

constexpr const char* test_metrics = "x.run_key = ?1 AND x.attempt = ?2 AND x.epoch = 0";

// The epochs of the run, each once. While the run is not finished, only epochs that all ranks have written.
constexpr const char* with_epochs = R"sql(
WITH done AS (
  SELECT e.*, e.epoch = k.after_epoch + 1 AS first_of_attempt, COALESCE(e.other_share, a.other_share) AS taken
  FROM attempt_chain k JOIN attempt a ON a.run_key = ?1 AND a.attempt = k.attempt
  JOIN attempt_epoch e ON e.run_key = ?1 AND e.attempt = k.attempt AND e.epoch > k.after_epoch
    AND e.epoch <= k.up_to_epoch
  WHERE k.run_key = ?1 AND (?3 = 'finished' OR e.ranks >= a.world_size)
))sql";

// The median over the epochs of `of` that have a value, as a named part of `put_state`.
std::string median_of(const std::string& column, const std::string& of) {
  return fmt::format(R"sql(median_{0} AS (
  SELECT AVG({0}) AS value
  FROM (SELECT {0}, ROW_NUMBER() OVER (ORDER BY {0}) AS place, COUNT(*) OVER () AS epochs
        FROM {1} WHERE {0} IS NOT NULL)
  WHERE place IN ((epochs + 1) / 2, (epochs + 2) / 2)
), )sql",
                     column, of);
}

// The sum over the epochs of `done`. A disturbed epoch counts as the mean of the others, unless all are disturbed.
std::string total_of(const std::string& column) {
  return fmt::format(R"sql(
  (SELECT SUM({0}) FILTER (WHERE counts) * (1.0 * COUNT(*) / COUNT(*) FILTER (WHERE counts))
   FROM (SELECT {0}, NOT disturbed OR MIN(disturbed) OVER () AS counts FROM done WHERE {0} IS NOT NULL)))sql",
                     column);
}

// Insert the row of `run_state`.
// - Timed epochs are all but the first of each attempt, which warms up. If there are fewer than 3 epochs, or
//   if each attempt has trained only one, all epochs are timed (`warm`).
// - Epochs that other processes disturbed are left out (`timed`), unless all are. Then the times do not count. If first
//   epochs are timed, one that is disturbed is enough for that, because it cannot be left out of only one arm.
// - A resumed attempt contributes the time up to the epoch from which it was resumed (`before`).
// - Times count if they count for all attempts of the chain, under the same circumstances.
std::string put_state() {
  return "INSERT INTO run_state (run_key, attempt, status, attempts, epochs_done, total_train_seconds, "
         "first_epochs_timed, timed_epochs, disturbed_epochs, epoch_train_seconds, epoch_processor_seconds, "
         "energy_joules, epoch_energy_joules, peak_device_bytes, total_seconds, test_accuracy, failure, "
         "updated, times_problem, times_count, "
         "other_share, others_limit)" +
         std::string(with_epochs) + R"sql(, warm AS (
  SELECT done.*, first_epochs_timed,
    IIF(first_epochs_timed, MAX(disturbed) OVER (), MIN(disturbed) OVER ()) AS all_disturbed
  FROM done JOIN (SELECT COUNT(*) < 3 OR COUNT(*) FILTER (WHERE NOT first_of_attempt) = 0 AS first_epochs_timed
                  FROM done WHERE train_seconds IS NOT NULL)
  WHERE first_epochs_timed OR NOT first_of_attempt
), timed AS (SELECT * FROM warm WHERE all_disturbed OR NOT disturbed), )sql" +
         median_of("train_seconds", "timed") + median_of("processor_seconds", "warm") +
         median_of("energy_joules", "timed") +
         R"sql(before AS (
  SELECT MAX(e.elapsed_seconds) AS seconds
  FROM attempt_chain k JOIN epoch e ON e.run_key = ?1 AND e.attempt = k.attempt AND e.epoch = k.up_to_epoch
  WHERE k.run_key = ?1
  GROUP BY e.attempt
)
SELECT ?1, ?2, ?3, (SELECT COUNT(*) FROM attempt WHERE run_key = ?1),
  (SELECT COUNT(*) FROM done),)sql" +
         total_of("train_seconds") + R"sql(,
  (SELECT MAX(first_epochs_timed) FROM warm), (SELECT COUNT(*) FROM timed),
  (SELECT COUNT(*) FROM warm) - (SELECT COUNT(*) FROM timed),
  (SELECT value FROM median_train_seconds),
  (SELECT value FROM median_processor_seconds),
  (SELECT IIF(COUNT(energy_joules) = COUNT(*), SUM(energy_joules), NULL) FROM done),
  (SELECT value FROM median_energy_joules),
  (SELECT MAX(peak_device_bytes) FROM done),
  s.total_seconds + COALESCE((SELECT SUM(seconds) FROM before), 0),
  )sql" + mean_over_ranks(test_metrics, "test", "correct") +
         R"sql(,
  s.failure,
  COALESCE((SELECT MAX(o.last_time) FROM record_log o WHERE o.run_key = ?1),
           (SELECT MAX(a.created) FROM attempt a WHERE a.run_key = ?1)),
  COALESCE(d.problem, t.problem), COALESCE(d.problem, t.problem) IS NULL,
  (SELECT IIF(COUNT(taken) = COUNT(*), COALESCE(SUM(taken * train_seconds) / SUM(train_seconds), AVG(taken)), NULL)
   FROM timed),
  t.others_limit
FROM (SELECT COALESCE(MIN(a.times_problem), IIF(COUNT(DISTINCT a.circumstances_hash) = 1, NULL,
               'its attempts ran under different circumstances')) AS problem,
        MAX(a.others_limit) AS others_limit
      FROM attempt_chain k JOIN attempt a ON a.run_key = ?1 AND a.attempt = k.attempt WHERE k.run_key = ?1) t,
  (SELECT CASE WHEN MAX(all_disturbed) THEN
     printf('other processes took %.3g %% of its cores in %s (limit %.3g %%)',
            100 * IIF(first_epochs_timed, MAX(taken), MIN(taken)),
            IIF(first_epochs_timed, 'an epoch', 'the least disturbed epoch'),
            100 * (SELECT MAX(a.others_limit) FROM attempt a WHERE a.run_key = ?1)) END AS problem FROM warm) d,
  attempt_summary s WHERE s.run_key = ?1 AND s.attempt = ?2)sql";
}

// Insert the final values of a finished run: metrics of its last epoch, and those after training.
std::string put_final() {
  return "INSERT INTO run_final (run_key" + each_recorded(all_phases, "{phase}_{name}") +
         each_of_sums("test_{name}") + ", total_validation_seconds)" + std::string(with_epochs) +
         " SELECT ?1" + each_recorded(epoch_phases, "e.{phase}_{name}") +
         each_recorded(test_phase, mean_over_ranks(test_metrics, "{phase}", "{record}")) +
         each_of_sums("{value}") + "," + total_of("validation_seconds") +
         " FROM (SELECT MAX(epoch) AS epoch FROM done) last LEFT JOIN done e ON e.epoch = last.epoch";
}

// The sum over devices, each once, because all ranks of a device record its energy. NULL if one device is not
// known. Most epochs have no energy.
constexpr const char* energy_of_devices = R"sql(CASE WHEN COUNT(e.energy_joules) > 0 THEN (
  SELECT IIF(COUNT(joules) = COUNT(*), SUM(joules), NULL)
  FROM (SELECT MAX(x.energy_joules) AS joules FROM epoch x
        WHERE x.run_key = e.run_key AND x.attempt = e.attempt AND x.epoch = e.epoch
        GROUP BY COALESCE(x.energy_device, x.rank))) END)sql";

// Insert the row of epoch ?3 of attempt ?2 of run ?1.
std::string put_epoch() {
  static constexpr const char* same_epoch =
      "x.run_key = e.run_key AND x.attempt = e.attempt AND x.epoch = e.epoch";
  return "INSERT OR REPLACE INTO attempt_epoch (run_key, attempt, epoch, ranks" +
         each_recorded(epoch_phases, "{phase}_{name}") +
         ", train_seconds, processor_seconds, validation_seconds, energy_joules, peak_device_bytes) "
         "SELECT e.run_key, e.attempt, e.epoch, COUNT(*)" +
         each_recorded(epoch_phases, mean_over_ranks(same_epoch, "{phase}", "{record}")) +
         ", MAX(e.train_seconds), IIF(COUNT(e.processor_seconds) = COUNT(*), MAX(e.processor_seconds), "
         "NULL), "
         "MAX(e.validation_seconds), " +
         energy_of_devices +
         ", MAX(e.peak_device_bytes) FROM epoch e "
         "WHERE e.run_key = ?1 AND e.attempt = ?2 AND e.epoch = ?3 GROUP BY e.run_key, e.attempt, e.epoch";
}

}  // namespace

void RunStates::refresh() {
  for (const auto& [run_key, changes] : changed_) {
    for (const auto& [attempt, epoch] : changes.epochs)
      execute(prepared_(put_epoch), run_key, attempt, epoch);
    for (const int attempt : changes.attempts) {
      execute(prepared_(put_epoch_use), run_key, attempt);
      faults_.put(run_key, attempt);
    }
    refresh(run_key);
  }
  changed_.clear();
}

void RunStates::refresh(const std::string& run_key) {
  execute(prepared_(put_times_problem), run_key);
  for (const char* clear :
       {"DELETE FROM attempt_chain WHERE run_key = ?", "DELETE FROM run_state WHERE run_key = ?",
        "DELETE FROM run_final WHERE run_key = ?"})
    execute(prepared_(clear), run_key);
  Bound counted(prepared_(find_counted), run_key);
  if (!counted.next()) return;
  const std::int64_t attempt = counted.row().getColumn(0).getInt64();
  const std::string status = counted.row().getColumn(1).getString();
  execute(prepared_(put_chain), run_key, attempt);
  execute(prepared_(put_state), run_key, attempt, status);
  if (status == "finished") execute(prepared_(put_final), run_key, attempt, status);
}

}  // namespace trainyard::db
