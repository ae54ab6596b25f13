// Queries of measured values.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include "db/database/metric_sql.h"
#include "db/database/statements.h"
#include "db/queries/axes.h"
#include "db/queries/queries.h"
#include "experiments/protocol/time_parts.h"

namespace trainyard::db {

namespace {

EpochRow epoch_of(RowReader row) {
  EpochRow epoch;
  row.into(epoch.run_key, epoch.model, epoch.strategy, epoch.seed, epoch.replica, epoch.epoch);
  for (const NamedColumn& value : epoch_columns()) epoch[value.column] = row.number();
  epoch.times_count = row.flag();
  return epoch;
}

// The columns as SQL: ", e.train_loss, e.train_accuracy, …".
std::string listed(const std::vector<NamedColumn>& columns, std::string_view prefix) {
  std::string text;
  for (const NamedColumn& value : columns) (text += ", ").append(prefix).append(value.name);
  return text;
}

FinalMetrics final_of(RowReader row) {
  FinalMetrics final;
  row.into(final.run_key, final.model, final.strategy, final.seed);
  for (const NamedColumn& value : final_columns()) final[value.column] = row.number();
  row.into(final.epochs, final.times_count, final.times_problem, final.other_share, final.others_limit,
           final.timed_epochs, final.disturbed_epochs, final.attempt, final.launched, final.fewer_replicas);
  return final;
}

std::vector<FinalMetrics> finals(const Database& database, const std::string& which, const std::string& of) {
  return read_rows(
      database,
      fmt::format(
          "SELECT f.run_key, f.model, f.strategy, f.seed{}, s.epochs_done, s.times_count, s.times_problem, "
          "s.other_share, s.others_limit, s.timed_epochs, s.disturbed_epochs, s.attempt, a.created, "
          "EXISTS (SELECT 1 FROM run_chain c JOIN run r ON r.run_key = c.run_key WHERE c.run_key = f.run_key "
          "AND "
          "c.world_size < r.replicas * r.stages * r.tensor + r.servers) FROM task_final_metrics f "
          "JOIN run_state s ON s.run_key = f.run_key "
          "JOIN attempt a ON a.run_key = s.run_key AND a.attempt = s.attempt{}",
          listed(final_columns(), "f."), which),
      final_of, of);
}

TimeParts time_parts_of(RowReader row) {
  TimeParts parts;
  parts.run_key = row.text();
  for (const std::string_view part : experiments::time_parts)
    if (const double seconds = row.number(); !std::isnan(seconds)) parts.seconds[std::string(part)] = seconds;
  return parts;
}

NamedColumn named(const std::string& name) {
  return {name, MetricColumn::named(name)};
}

std::vector<NamedColumn> columns_of(Phases phases, std::string_view models::Cost::*cost) {
  std::vector<NamedColumn> columns;
  for (const models::Metric& metric : models::all_metrics)
    for (const std::string_view phase : metric.phases())
      if (std::ranges::find(phases, phase) != phases.end())
        columns.push_back(named(fmt::format("{}_{}", phase, metric.name)));
  for (const models::Cost& each : models::all_costs)
    if (!(each.*cost).empty()) columns.push_back(named(std::string(each.*cost)));
  columns.push_back(named("peak_device_bytes"));
  return columns;
}

using PlannedRuns = std::vector<std::pair<std::string, std::int64_t>>;  // each with its number of ranks

// The runs of an experiment in order of first planning.
PlannedRuns planned_runs(const Database& database, const std::string& experiment) {
  return read_all<PlannedRuns>(database, R"sql(
    SELECT r.run_key, r.replicas * r.stages * r.tensor + r.servers FROM experiment_run m JOIN run r ON r.run_key = m.run_key
    WHERE m.experiment = ? ORDER BY m.first_journal_id, m.position)sql",
                               experiment);
}

// The averages of the epochs of run ?1. `experiment`: SQL of the experiment whose labels they have.
std::string averages_of_run(const std::string& experiment) {
  return fmt::format(
      "SELECT e.run_key, e.model, e.strategy, e.seed, -1, e.epoch{}, e.times_count FROM task_epoch_average e "
      "WHERE e.run_key = ?1 AND e.experiment IS {} ORDER BY e.epoch",
      listed(epoch_columns(), "e."), experiment);
}

// The epochs of each replica of run ?1 of experiment ?2, as in the view task_epoch_replica.
std::string replicas_of_run() {
  static constexpr const char* of_replica =
      "MAX(m.sum / NULLIF(m.weight, 0)) FILTER (WHERE m.phase = '{phase}' AND m.name = '{record}') "
      "AS {phase}_{name}";
  return R"sql(
WITH r AS (
  SELECT r.run_key, r.model, m.strategy, r.seed, r.stages * r.tensor AS stages, r.replicas * r.stages * r.tensor AS workers, r.task
  FROM run r JOIN experiment_run m ON m.run_key = r.run_key WHERE r.run_key = ?1 AND m.experiment = ?2
), times AS (
  SELECT e.epoch, e.rank / r.stages AS replica, MAX(e.train_seconds) AS train_seconds,
    MAX(e.validation_seconds) AS validation_seconds, MAX(e.processor_seconds) AS processor_seconds,
    NOT MAX(a.disturbed) AS times_count
  FROM r CROSS JOIN run_chain c ON c.run_key = ?1
  CROSS JOIN epoch e
    ON e.run_key = ?1 AND e.attempt = c.attempt AND e.epoch > c.after_epoch AND e.epoch <= c.up_to_epoch
      AND e.rank < r.workers
  CROSS JOIN attempt_epoch a ON a.run_key = ?1 AND a.attempt = e.attempt AND a.epoch = e.epoch
  GROUP BY 1, 2 HAVING COUNT(*) = r.stages
), means AS (
  SELECT m.epoch, m.rank / r.stages AS replica)sql" +
         each_recorded(epoch_phases, of_replica) +
         R"sql(
  FROM r CROSS JOIN run_chain c ON c.run_key = ?1
  CROSS JOIN metric m
    ON m.run_key = ?1 AND m.attempt = c.attempt AND m.epoch > c.after_epoch AND m.epoch <= c.up_to_epoch
  GROUP BY 1, 2
), v AS (
  SELECT *, NULL AS energy_joules, NULL AS peak_device_bytes FROM times LEFT JOIN means USING (epoch, replica)
), e AS (
  SELECT v.*)sql" +
         each_of_loss(epoch_phases) +
         " FROM v JOIN r) SELECT r.run_key, r.model, r.strategy, r.seed, e.replica, e.epoch" +
         listed(epoch_columns(), "e.") + ", e.times_count FROM r JOIN e ORDER BY e.replica, e.epoch";
}

}  // namespace

const std::vector<NamedColumn>& epoch_columns() {
  static const std::vector<NamedColumn> columns = columns_of(epoch_phases, &models::Cost::epoch_column);
  return columns;
}

const std::vector<NamedColumn>& final_columns() {
  static const std::vector<NamedColumn> columns = columns_of(all_phases, &models::Cost::final_column);
  return columns;
}

// A run in several experiments has the same epochs in each, so those of the first are used.
std::vector<EpochRow> epochs_of_run(const Database& database, const std::string& run_key) {
  return read_rows(database,
                   averages_of_run("(SELECT m.experiment FROM experiment_run m WHERE m.run_key = ?1 "
                                   "ORDER BY m.first_journal_id LIMIT 1)"),
                   epoch_of, run_key);
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

// Runs are counted in the middle between the first and the last epoch, away from set-up and end.
std::vector<PackedRun> packed_runs(const Database& database) {
  const auto packed_of = [](RowReader row) {
    PackedRun packed;
    std::string strategy, axes;
    row.into(packed.run_key, strategy, packed.circumstances_hash, packed.epoch_train_seconds, packed.at_once,
             axes);
    packed.axes = axes_from(axes, strategy);
    return packed;
  };
  return read_rows(database,
                   R"sql(
    WITH packed AS (
      SELECT c.run_key, r.strategy, a.circumstances_hash, t.epoch_train_seconds, a.created,
        (SELECT julianday(MIN(e.time)) FROM epoch e WHERE e.run_key = a.run_key AND e.attempt = a.attempt) AS first,
        (SELECT julianday(MAX(e.time)) FROM epoch e WHERE e.run_key = a.run_key AND e.attempt = a.attempt) AS last
      FROM attempt a JOIN counted_attempt c ON c.run_key = a.run_key AND c.attempt = a.attempt
      JOIN run r ON r.run_key = a.run_key JOIN epoch_train_seconds t ON t.run_key = a.run_key
      WHERE a.host_exclusive = 0 AND a.devices_shared = 0 AND c.status = 'finished')
    SELECT r.run_key, r.strategy, r.circumstances_hash, r.epoch_train_seconds,
      (SELECT COUNT(*) FROM packed o WHERE (r.first + r.last) / 2 BETWEEN o.first AND o.last) AS at_once,
      )sql" + std::string(axes_of_run) +
                       R"sql(
    FROM packed r ORDER BY r.created, r.run_key)sql",
                   packed_of);
}

std::vector<TimeParts> time_parts(const Database& database, const std::string& experiment,
                                  const std::string& run_key) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(),
                                "SELECT run_key" + each_part("{part}_seconds") +
                                    " FROM time_parts WHERE run_key = ? AND experiment = ?");
    std::vector<TimeParts> found;
    for (const auto& [key, ranks] : planned_runs(database, experiment))
      if (run_key.empty() || key == run_key)
        for (Bound rows(statement, key, experiment); rows.next();)
          found.push_back(time_parts_of(RowReader(rows.row())));
    return found;
  });
}

std::vector<RankCost> rank_costs(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(), R"sql(
      WITH amount AS (
        SELECT e.rank, e.rank >= q.replicas * q.stages * q.tensor AS server, w.key AS what, n.key AS name,
          CASE w.key WHEN 'sent_bytes' THEN SUM(n.value) * 1.0 / SUM(e.extra ->> '$.steps')
                     WHEN 'held_bytes' THEN MAX(n.value) ELSE SUM(n.value) END AS amount
        FROM attempt_chain k
        JOIN run_state s ON s.run_key = k.run_key AND s.status = 'finished'
        JOIN run q ON q.run_key = k.run_key
        JOIN epoch e ON e.run_key = k.run_key AND e.attempt = k.attempt
          AND e.epoch > k.after_epoch AND e.epoch <= k.up_to_epoch
        JOIN json_each(e.extra) w ON w.key IN ('sent_bytes', 'held_bytes', 'staleness') AND w.type = 'object'
        JOIN json_each(w.value) n ON n.type IN ('integer', 'real')
        WHERE k.run_key = ?
        GROUP BY e.rank, w.key, n.key)
      SELECT server, what, name, CASE what WHEN 'staleness' THEN SUM(amount) ELSE MAX(amount) END
      FROM amount WHERE amount IS NOT NULL GROUP BY server, what, name)sql");
    std::vector<RankCost> found;
    for (const auto& [key, ranks] : planned_runs(database, experiment))
      for (Bound rows(statement, key); rows.next();) {
        RowReader row(rows.row());
        RankCost& cost = found.emplace_back();
        cost.run_key = key;
        cost.server = row.integer() != 0;
        cost.what = row.text();
        cost.name = row.text();
        cost.amount = row.number();
      }
    return found;
  });
}

std::vector<StepEvent> step_events(const Database& database, const std::string& experiment) {
  const auto event_of = [](RowReader row) {
    return StepEvent{row.text(), row.integer(), row.integer(), row.integer(), row.integer(),
                     row.text(), row.text(),    row.integer(), row.number(),  row.number()};
  };
  return read_rows(database, R"sql(
      SELECT s.run_key, s.epoch, s.step, s.replica, s.stage, s.host, s.part, COALESCE(s.micro_batch, -1), s.begin_seconds,
        s.end_seconds
      FROM experiment_run m CROSS JOIN run r ON r.run_key = m.run_key CROSS JOIN step_event s ON s.run_key = m.run_key
      WHERE m.experiment = ? AND s.rank % r.tensor = 0 ORDER BY m.first_journal_id, m.position, s.epoch, s.step, s.rank, s.begin_seconds)sql",
                   event_of, experiment);
}

std::vector<StatedMetric> stated_metrics(const Database& database, const std::string& experiment) {
  std::vector<StatedMetric> stated;
  const auto texts = read_all<std::vector<std::pair<std::string, std::string>>>(database, R"sql(
      SELECT DISTINCT s.run_key, p.start_extra -> '$.metrics' FROM experiment_run m
      JOIN run_state s ON s.run_key = m.run_key
      JOIN attempt a ON a.run_key = s.run_key AND a.attempt = s.attempt
      JOIN process p ON p.run_key = s.run_key AND p.attempt = s.attempt
      WHERE m.experiment = ? AND p.start_extra ->> '$.metrics' IS NOT NULL ORDER BY a.created, p.rank)sql",
                                                                                experiment);
  for (const auto& [key, text] : texts)
    for (experiments::OwnMetric& metric : experiments::own_metrics_from_json(nlohmann::json::parse(text)))
      stated.push_back({key, std::move(metric)});
  return stated;
}

std::vector<OwnValue> own_values(const Database& database, const std::string& experiment,
                                 const std::vector<std::string>& names) {
  const auto value_of = [](RowReader row) {
    return OwnValue{row.text(),   row.integer(), row.text(), row.text(),
                    row.number(), row.number(),  row.flag()};
  };
  return read_rows(database, R"sql(
      SELECT m.run_key, m.epoch, m.phase, m.name,
        IIF(COUNT(m.sum) = COUNT(*), SUM(m.sum) / NULLIF(SUM(m.weight), 0), NULL),
        IIF(COUNT(m.sum) = COUNT(*), SUM(m.sum / NULLIF(m.weight, 0)), NULL),
        EXISTS (SELECT 1 FROM timed_epoch t WHERE t.run_key = m.run_key AND t.epoch = m.epoch)
      FROM experiment_run x
      CROSS JOIN run_state s ON s.run_key = x.run_key
      CROSS JOIN attempt_chain c ON c.run_key = x.run_key
      CROSS JOIN metric m ON m.run_key = c.run_key AND m.attempt = c.attempt
        AND (m.epoch > c.after_epoch AND m.epoch <= c.up_to_epoch OR m.epoch = 0 AND m.attempt = s.attempt)
      WHERE x.experiment = ?1 AND m.name IN (SELECT value FROM json_each(?2))
      GROUP BY m.run_key, m.phase, m.name, m.epoch ORDER BY m.run_key, m.phase, m.name, m.epoch)sql",
                   value_of, experiment, nlohmann::json(names).dump());
}

double steps_per_epoch(const Database& database, const std::string& run_key) {
  return read_all<std::vector<double>>(
             database,
             "SELECT AVG(json_extract(e.extra, '$.steps')) FROM timed_epoch t JOIN epoch e "
             "ON e.run_key = t.run_key AND e.attempt = t.attempt AND e.epoch = +t.epoch WHERE t.run_key = ?",
             run_key)
      .front();
}

// The epochs are read run by run, so that SQLite sorts only those of one run.
std::vector<EpochRow> epoch_averages(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    SQLite::Statement averages(database.connection(), averages_of_run("?2"));
    std::vector<EpochRow> found;
    for (const auto& [key, ranks] : planned_runs(database, experiment))
      for (Bound rows(averages, key, experiment); rows.next();)
        found.push_back(epoch_of(RowReader(rows.row())));
    return found;
  });
}

// The rows of the view task_epoch_replica, which searches each metric of each rank. This reads the tables in the
// order of their keys. If a run has one rank, its averages are those of its replica, except energy and memory.
std::vector<EpochRow> epoch_replicas(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    SQLite::Statement averages(database.connection(), averages_of_run("?2"));
    SQLite::Statement replicas(database.connection(), replicas_of_run());
    std::vector<EpochRow> found;
    for (const auto& [key, ranks] : planned_runs(database, experiment))
      for (Bound rows(ranks == 1 ? averages : replicas, key, experiment); rows.next();) {
        EpochRow& row = found.emplace_back(epoch_of(RowReader(rows.row())));
        if (ranks > 1) continue;
        row.replica = 0;
        row["energy_joules"] = row["peak_device_bytes"] = not_defined;
      }
    return found;
  });
}

}  // namespace trainyard::db
