// Questions about what was measured.
#include <array>
#include <cmath>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/database/binding.h"
#include "db/database/errors.h"
#include "db/database/rows.h"
#include "db/queries/axes.h"
#include "db/queries/queries.h"

namespace trainyard::db {

namespace {

EpochRow epoch_of(RowReader row) {
  EpochRow epoch;
  epoch.run_key = row.text();
  epoch.model = row.text();
  epoch.strategy = row.text();
  epoch.seed = row.integer();
  epoch.replica = row.integer();
  epoch.epoch = row.integer();
  epoch.train_loss = row.number();
  epoch.train_accuracy = row.number();
  epoch.validation_loss = row.number();
  epoch.validation_accuracy = row.number();
  epoch.train_seconds = row.number();
  epoch.validation_seconds = row.number();
  epoch.train_perplexity = row.number();
  epoch.validation_perplexity = row.number();
  epoch.train_psnr = row.number();
  epoch.validation_psnr = row.number();
  epoch.energy_joules = row.number();
  epoch.peak_device_bytes = row.number();
  return epoch;
}

std::vector<EpochRow> epochs(const Database& database, const char* sql, const std::string& of) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(), sql);
    Bound rows(statement, of);
    std::vector<EpochRow> found;
    while (rows.next()) found.push_back(epoch_of(RowReader(rows.row())));
    return found;
  });
}

FinalMetrics final_of(RowReader row) {
  FinalMetrics final;
  final.run_key = row.text();
  final.model = row.text();
  final.strategy = row.text();
  final.seed = row.integer();
  using F = FinalMetrics;
  for (double F::*value :
       {&F::train_loss, &F::train_accuracy, &F::validation_loss, &F::validation_accuracy, &F::test_loss,
        &F::test_accuracy, &F::epoch_train_seconds, &F::total_validation_seconds, &F::train_perplexity,
        &F::validation_perplexity, &F::test_perplexity, &F::train_psnr, &F::validation_psnr, &F::test_psnr,
        &F::test_bleu, &F::epoch_energy_joules, &F::peak_device_bytes})
    final.*value = row.number();
  final.epochs = row.integer();
  final.times_count = row.flag();
  final.times_problem = row.text();
  final.other_share = row.number();
  return final;
}

std::vector<FinalMetrics> finals(const Database& database, const std::string& which, const std::string& of) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(), R"sql(
      SELECT f.run_key, f.model, f.strategy, f.seed, f.train_loss, f.train_accuracy, f.validation_loss,
             f.validation_accuracy, f.test_loss, f.test_accuracy, f.epoch_train_seconds, f.total_validation_seconds,
             f.train_perplexity, f.validation_perplexity, f.test_perplexity, f.train_psnr, f.validation_psnr,
             f.test_psnr, f.test_bleu, f.epoch_energy_joules, f.peak_device_bytes, s.epochs_done, s.times_count,
             s.times_problem, s.other_share
      FROM task_final_metrics f
      JOIN run_state s ON s.run_key = f.run_key)sql" + which);
    Bound rows(statement, of);
    std::vector<FinalMetrics> found;
    while (rows.next()) found.push_back(final_of(RowReader(rows.row())));
    return found;
  });
}

constexpr std::array part_names{"data",   "forward",   "backward", "exposed_communication",
                                "bubble", "optimizer", "other"};

TimeParts time_parts_of(RowReader row) {
  TimeParts parts;
  parts.run_key = row.text();
  parts.model = row.text();
  parts.strategy = row.text();
  parts.seed = row.integer();
  for (const char* name : part_names) {
    const double seconds = row.number();
    if (!std::isnan(seconds)) parts.seconds[name] = seconds;
  }
  return parts;
}

}  // namespace

std::vector<EpochRow> epoch_averages(const Database& database, const std::string& experiment) {
  return epochs(database, R"sql(
    SELECT e.run_key, e.model, e.strategy, e.seed, -1, e.epoch, e.train_loss, e.train_accuracy,
           e.validation_loss, e.validation_accuracy, e.train_seconds, e.validation_seconds,
           e.train_perplexity, e.validation_perplexity, e.train_psnr, e.validation_psnr, e.energy_joules,
           e.peak_device_bytes
    FROM task_epoch_average e JOIN experiment_run m ON m.run_key = e.run_key AND m.experiment = e.experiment
    WHERE e.experiment = ? ORDER BY m.first_journal_id, m.position, e.epoch)sql",
                experiment);
}

// A run in several experiments has the same epochs in each: those of the first are taken.
std::vector<EpochRow> epochs_of_run(const Database& database, const std::string& run_key) {
  return epochs(database, R"sql(
    SELECT e.run_key, e.model, e.strategy, e.seed, -1, e.epoch, e.train_loss, e.train_accuracy,
           e.validation_loss, e.validation_accuracy, e.train_seconds, e.validation_seconds,
           e.train_perplexity, e.validation_perplexity, e.train_psnr, e.validation_psnr, e.energy_joules,
           e.peak_device_bytes
    FROM task_epoch_average e
    WHERE e.run_key = ?1 AND e.experiment IS (SELECT m.experiment FROM experiment_run m WHERE m.run_key = ?1
                                              ORDER BY m.first_journal_id LIMIT 1)
    ORDER BY e.epoch)sql",
                run_key);
}

std::vector<FinalMetrics> final_metrics(const Database& database, const std::string& experiment) {
  return finals(database, R"sql(
      JOIN experiment_run m ON m.run_key = f.run_key AND m.experiment = f.experiment
      WHERE f.experiment = ? ORDER BY m.first_journal_id, m.position)sql",
                experiment);
}

// A run in several experiments has the same metrics in each.
std::optional<FinalMetrics> final_metrics_of_run(const Database& database, const std::string& run_key) {
  auto found = finals(database, " WHERE f.run_key = ? LIMIT 1", run_key);
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

// A run's middle: between its first and last epoch, where set-up is over and the end not near.
std::vector<PackedRun> packed_runs(const Database& database) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(), R"sql(
      WITH packed AS (
        SELECT c.run_key, r.strategy, a.circumstances_hash, t.epoch_train_seconds, a.created,
          (SELECT julianday(MIN(e.time)) FROM epoch e WHERE e.run_key = a.run_key AND e.attempt = a.attempt) AS first,
          (SELECT julianday(MAX(e.time)) FROM epoch e WHERE e.run_key = a.run_key AND e.attempt = a.attempt) AS last
        FROM attempt a JOIN counted_attempt c ON c.run_key = a.run_key AND c.attempt = a.attempt
        JOIN run r ON r.run_key = a.run_key JOIN epoch_train_seconds t ON t.run_key = a.run_key
        WHERE a.host_exclusive = 0 AND a.devices_shared = 0 AND c.status = 'finished')
      SELECT p.run_key, p.strategy, p.circumstances_hash, p.epoch_train_seconds,
        (SELECT COUNT(*) FROM packed o WHERE (p.first + p.last) / 2 BETWEEN o.first AND o.last) AS at_once
      FROM packed p ORDER BY p.created, p.run_key)sql");
    Bound rows(statement);
    Axes axes(database.connection());
    std::vector<PackedRun> found;
    while (rows.next()) {
      RowReader row(rows.row());
      PackedRun packed;
      packed.run_key = row.text();
      packed.axes = axes.of(packed.run_key, row.text());
      packed.circumstances_hash = row.text();
      packed.epoch_train_seconds = row.number();
      packed.at_once = static_cast<int>(row.integer());
      found.push_back(std::move(packed));
    }
    return found;
  });
}

std::vector<TimeParts> time_parts(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(), R"sql(
      SELECT t.run_key, t.model, t.strategy, t.seed, t.data_seconds, t.forward_seconds, t.backward_seconds,
             t.exposed_communication_seconds, t.bubble_seconds, t.optimizer_seconds, t.other_seconds
      FROM time_parts t JOIN experiment_run m ON m.run_key = t.run_key AND m.experiment = t.experiment
      WHERE t.experiment = ? ORDER BY m.first_journal_id, m.position)sql");
    Bound rows(statement, experiment);
    std::vector<TimeParts> found;
    while (rows.next()) found.push_back(time_parts_of(RowReader(rows.row())));
    return found;
  });
}

}  // namespace trainyard::db
