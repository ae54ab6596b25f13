// SQL that computes the content of the kept tables from the rows of the records, for all runs at once. Append
// a SELECT from `computed_…`.
#pragma once

#include <string>

namespace trainyard::db::testing {

inline std::string from_epochs(const std::string& select) {
  std::string sql = R"sql(
WITH RECURSIVE counted AS (
  SELECT run_key, attempt, status FROM (
    SELECT run_key, attempt, status,
      ROW_NUMBER() OVER (PARTITION BY run_key ORDER BY status = 'finished' DESC, attempt DESC) AS place
    FROM attempt_status)
  WHERE place = 1
), chain AS (
  SELECT c.run_key, c.status, c.attempt, 1000000 AS up_to_epoch FROM counted c
  UNION ALL
  SELECT c.run_key, c.status, a.resumes_attempt, MIN(c.up_to_epoch, COALESCE(a.resumes_after_epoch, 0))
  FROM chain c JOIN attempt a ON a.run_key = c.run_key AND a.attempt = c.attempt
  WHERE a.resumes_attempt < a.attempt
), links AS (
  SELECT c.*, a.world_size, IIF(a.resumes_attempt < a.attempt, COALESCE(a.resumes_after_epoch, 0), 0) AS after_epoch
  FROM chain c JOIN attempt a ON a.run_key = c.run_key AND a.attempt = c.attempt
), computed_epoch AS (
  SELECT e.run_key, e.epoch, e.attempt, e.epoch = c.after_epoch + 1 AS first_of_attempt,
    MAX(e.train_seconds) AS train_seconds, MAX(e.validation_seconds) AS validation_seconds,
    MAX(e.peak_device_bytes) AS peak_device_bytes
  FROM links c JOIN epoch e
    ON e.run_key = c.run_key AND e.attempt = c.attempt AND e.epoch > c.after_epoch AND e.epoch <= c.up_to_epoch
  GROUP BY e.run_key, e.epoch, e.attempt
  HAVING c.status = 'finished' OR COUNT(*) >= c.world_size
), device_energy AS (
  SELECT run_key, attempt, epoch, COALESCE(energy_device, 'of rank ' || rank) AS device, MAX(energy_joules) AS joules
  FROM epoch GROUP BY run_key, attempt, epoch, device
), energy AS (
  SELECT run_key, attempt, epoch, SUM(joules) AS joules FROM device_energy
  GROUP BY run_key, attempt, epoch HAVING COUNT(joules) = COUNT(*)
), mean AS (
  SELECT run_key, attempt, epoch, phase, name,
    IIF(COUNT(sum) = COUNT(*), SUM(sum) / NULLIF(SUM(weight), 0), NULL) AS value
  FROM metric GROUP BY run_key, attempt, epoch, phase, name
), computed_average AS (
  SELECT e.run_key, e.epoch, e.attempt, @train_loss, @train_correct, @validation_loss, @validation_correct,
    e.train_seconds, e.validation_seconds, n.joules AS energy_joules, e.peak_device_bytes
  FROM computed_epoch e LEFT JOIN energy n ON n.run_key = e.run_key AND n.attempt = e.attempt AND n.epoch = e.epoch
), computed_timed AS (
  SELECT run_key, epoch, attempt, train_seconds
  FROM (SELECT *, COUNT(*) OVER of_run AS epochs, SUM(NOT first_of_attempt) OVER of_run AS further
        FROM computed_epoch WHERE train_seconds IS NOT NULL WINDOW of_run AS (PARTITION BY run_key))
  WHERE NOT first_of_attempt OR epochs < 3 OR further = 0
), computed_seconds AS (
  SELECT run_key, AVG(train_seconds) AS epoch_train_seconds
  FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY run_key ORDER BY train_seconds) AS place,
          COUNT(*) OVER (PARTITION BY run_key) AS epochs
        FROM computed_timed)
  WHERE place IN ((epochs + 1) / 2, (epochs + 2) / 2) GROUP BY run_key
), last AS (
  SELECT *, MAX(epoch) FROM computed_average GROUP BY run_key
), bleu AS (
  SELECT run_key, IIF(COUNT(DISTINCT name) < 5 OR MIN(whole) = 0, NULL, IIF(MIN(sum) <= 0, 0.0, 100 * exp(SUM(part)))) AS value
  FROM (SELECT c.run_key, m.name, COUNT(m.sum) = COUNT(*) AS whole, SUM(m.sum) AS sum,
          IIF(m.name = 'bleu_length', MIN(0, 1 - SUM(m.weight) / SUM(m.sum)), ln(SUM(m.sum) / SUM(m.weight)) / 4) AS part
        FROM counted c JOIN metric m ON m.run_key = c.run_key AND m.attempt = c.attempt
        WHERE m.epoch = 0 AND m.phase = 'test' AND m.name LIKE 'bleu%' GROUP BY c.run_key, m.name)
  GROUP BY run_key
), computed_final AS (
  SELECT c.run_key, l.train_loss, l.train_correct, l.validation_loss, l.validation_correct,
    (SELECT value FROM mean m WHERE m.run_key = c.run_key AND m.attempt = c.attempt AND m.epoch = 0
       AND m.phase = 'test' AND m.name = 'loss') AS test_loss,
    (SELECT value FROM mean m WHERE m.run_key = c.run_key AND m.attempt = c.attempt AND m.epoch = 0
       AND m.phase = 'test' AND m.name = 'correct') AS test_correct,
    s.epoch_train_seconds,
    (SELECT SUM(validation_seconds) FROM computed_epoch e WHERE e.run_key = c.run_key) AS total_validation_seconds,
    (SELECT value FROM bleu b WHERE b.run_key = c.run_key) AS test_bleu
  FROM counted c LEFT JOIN last l ON l.run_key = c.run_key LEFT JOIN computed_seconds s ON s.run_key = c.run_key
  WHERE c.status = 'finished'
)
)sql";
  for (const std::string phase : {"train", "validation"})
    for (const std::string name : {"loss", "correct"}) {
      std::string column = phase;
      column.append("_").append(name);
      std::string value =
          "(SELECT value FROM mean m WHERE m.run_key = e.run_key AND m.attempt = e.attempt AND m.epoch = "
          "e.epoch AND m.phase = '";
      value.append(phase).append("' AND m.name = '").append(name).append("') AS ").append(column);
      sql.replace(sql.find("@" + column), column.size() + 1, value);
    }
  return sql + select;
}

}  // namespace trainyard::db::testing
