// Queries of measured values.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
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
  epoch.run_key = row.text();
  epoch.model = row.text();
  epoch.strategy = row.text();
  epoch.seed = row.integer();
  epoch.replica = row.integer();
  epoch.epoch = row.integer();
  for (const NamedColumn& value : epoch_columns()) epoch[value.column] = row.number();
  return epoch;
}

// The columns as SQL: ", e.train_loss, e.train_accuracy, …".
std::string listed(const std::vector<NamedColumn>& columns, std::string_view prefix) {
  std::string text;
  for (const NamedColumn& value : columns) (text += ", ").append(prefix).append(value.name);
  return text;
}

// Rows of task_epoch_average `e` that `which` selects.
std::vector<EpochRow> averages(const Database& database, const std::string& which, const std::string& of) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(
        database.connection(),
        fmt::format(
            "SELECT e.run_key, e.model, e.strategy, e.seed, -1, e.epoch{} FROM task_epoch_average e{}",
            listed(epoch_columns(), "e."), which));
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
  for (const NamedColumn& value : final_columns()) final[value.column] = row.number();
  final.epochs = row.integer();
  final.times_count = row.flag();
  final.times_problem = row.text();
  final.other_share = row.number();
  return final;
}

std::vector<FinalMetrics> finals(const Database& database, const std::string& which, const std::string& of) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(
        database.connection(),
        fmt::format(
            "SELECT f.run_key, f.model, f.strategy, f.seed{}, s.epochs_done, s.times_count, s.times_problem, "
            "s.other_share FROM task_final_metrics f JOIN run_state s ON s.run_key = f.run_key{}",
            listed(final_columns(), "f."), which));
    Bound rows(statement, of);
    std::vector<FinalMetrics> found;
    while (rows.next()) found.push_back(final_of(RowReader(rows.row())));
    return found;
  });
}

TimeParts time_parts_of(RowReader row) {
  TimeParts parts;
  parts.run_key = row.text();
  parts.model = row.text();
  parts.strategy = row.text();
  parts.seed = row.integer();
  for (const std::string_view part : experiments::time_parts)
    if (const double seconds = row.number(); !std::isnan(seconds)) parts.seconds[std::string(part)] = seconds;
  return parts;
}

}  // namespace

namespace {

NamedColumn named(const std::string& name) {
  return {name, MetricColumn::named(name)};
}

std::vector<NamedColumn> columns_of(Phases phases, std::string_view models::Cost::*cost) {
  std::vector<NamedColumn> columns;
  for (const models::Metric& metric : models::all_metrics)
    for (const std::string_view phase : metric.phases())
      if (std::ranges::find(phases, phase) != phases.end())
        columns.push_back(named(fmt::format("{}_{}", phase, metric.name)));
  for (const models::Cost& each : models::all_costs) columns.push_back(named(std::string(each.*cost)));
  columns.push_back(named("peak_device_bytes"));
  return columns;
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

std::vector<EpochRow> epoch_averages(const Database& database, const std::string& experiment) {
  return averages(database, R"sql(
    JOIN experiment_run m ON m.run_key = e.run_key AND m.experiment = e.experiment
    WHERE e.experiment = ? ORDER BY m.first_journal_id, m.position, e.epoch)sql",
                  experiment);
}

// A run in several experiments has the same epochs in each, so those of the first are used.
std::vector<EpochRow> epochs_of_run(const Database& database, const std::string& run_key) {
  return averages(database, R"sql(
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

// Runs are counted in the middle between the first and the last epoch, away from set-up and end.
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
    SQLite::Statement statement(database.connection(), "SELECT t.run_key, t.model, t.strategy, t.seed" +
                                                           each_part("t.{part}_seconds") + R"sql(
      FROM time_parts t JOIN experiment_run m ON m.run_key = t.run_key AND m.experiment = t.experiment
      WHERE t.experiment = ? ORDER BY m.first_journal_id, m.position)sql");
    Bound rows(statement, experiment);
    std::vector<TimeParts> found;
    while (rows.next()) found.push_back(time_parts_of(RowReader(rows.row())));
    return found;
  });
}

// The rows of the view task_epoch_replica, read in one pass over `epoch` and `metric` in the order of their
// primary keys. Reports on a million rows need this. A test compares it with the view.

namespace {

// An attempt of a run, which contributes the epochs after `after_epoch` up to `up_to_epoch`.
struct ChainLink {
  std::string run_key;
  std::string model;
  std::string strategy;
  std::int64_t seed = 0;
  std::string task;
  std::int64_t stages = 1;
  std::int64_t attempt = 0;
  std::int64_t after_epoch = 0;
  std::int64_t up_to_epoch = 0;
};

std::vector<ChainLink> chain_of(const Database& database, const std::string& experiment) {
  SQLite::Statement statement(database.connection(), R"sql(
    SELECT r.run_key, r.model, m.strategy, r.seed, r.task, r.stages, c.attempt, c.after_epoch,
           c.up_to_epoch
    FROM experiment_run m JOIN run r ON r.run_key = m.run_key JOIN run_chain c ON c.run_key = m.run_key
    WHERE m.experiment = ? ORDER BY m.first_journal_id, m.position, c.attempt)sql");
  Bound rows(statement, experiment);
  std::vector<ChainLink> chain;
  while (rows.next()) {
    RowReader row(rows.row());
    ChainLink link;
    link.run_key = row.text();
    link.model = row.text();
    link.strategy = row.text();
    link.seed = row.integer();
    link.task = row.text();
    link.stages = std::max<std::int64_t>(1, row.integer());
    link.attempt = row.integer();
    link.after_epoch = row.integer();
    link.up_to_epoch = row.integer();
    chain.push_back(std::move(link));
  }
  return chain;
}

// A metric in a phase of an epoch that is a mean over ranks.
struct Mean {
  std::string_view phase;
  std::string_view record;
  MetricColumn column;
};

const std::vector<Mean>& means() {
  static const std::vector<Mean> rows = [] {
    std::vector<Mean> all;
    for (const std::string_view phase : epoch_phases)
      for (const models::Metric& metric : models::all_metrics)
        if (!metric.record.empty())
          all.push_back(
              {phase, metric.record, MetricColumn::named(fmt::format("{}_{}", phase, metric.name))});
    return all;
  }();
  return rows;
}

// The maximum as in SQL, which ignores NaN.
void take_greater(double& greatest, double value) {
  if (!(greatest >= value)) greatest = std::isnan(value) ? greatest : value;
}

// An epoch of a replica while it is read. Only its last stage writes metrics.
struct ReplicaEpoch {
  MetricValues values;
  std::int64_t ranks = 0;
};
using ReplicaEpochs = std::map<std::pair<std::int64_t, std::int64_t>, ReplicaEpoch>;  // by (epoch, replica)

// Metrics derived from the losses of an epoch, with the formulas of the views.
class LossFormulas {
 public:
  explicit LossFormulas(const Database& database)
      : statement_(database.connection(), "SELECT 0" + each_of_loss(epoch_phases) +
                                              " FROM (SELECT ?1 AS train_loss, ?2 AS validation_loss) v, "
                                              "(SELECT ?3 AS task) r") {
    for (const models::Metric& metric : models::all_metrics)
      for (const std::string_view phase : epoch_phases)
        if (!metric.of_loss.empty())
          columns_.push_back(MetricColumn::named(fmt::format("{}_{}", phase, metric.name)));
  }

  void fill(MetricValues& values, const std::string& task) {
    Bound result(statement_, values["train_loss"], values["validation_loss"], task);
    if (!result.next()) return;
    RowReader row(result.row());
    (void)row.integer();
    for (const MetricColumn column : columns_) values[column] = row.number();
  }

 private:
  SQLite::Statement statement_;
  std::vector<MetricColumn> columns_;
};

EpochRow row_of(const ChainLink& link, std::int64_t epoch, std::int64_t replica, const ReplicaEpoch& of) {
  EpochRow row;
  row.run_key = link.run_key;
  row.model = link.model;
  row.strategy = link.strategy;
  row.seed = link.seed;
  row.replica = replica;
  row.epoch = epoch;
  static_cast<MetricValues&>(row) = of.values;
  return row;
}

// Reader of one link after another, with two statements.
class ReplicaReader {
 public:
  explicit ReplicaReader(const Database& database)
      : times_(database.connection(), R"sql(
          SELECT epoch, rank, train_seconds, validation_seconds FROM epoch
          WHERE run_key = ? AND attempt = ? AND epoch > ? AND epoch <= ?)sql"),
        metrics_(database.connection(), R"sql(
          SELECT epoch, rank, phase, name, sum, weight FROM metric
          WHERE run_key = ? AND attempt = ? AND epoch > ? AND epoch <= ?)sql"),
        formulas_(database) {}

  ReplicaEpochs read(const ChainLink& link) {
    ReplicaEpochs epochs;
    read_times(link, epochs);
    read_metrics(link, epochs);
    if (has_formulas(link.task))
      for (auto& [place, epoch] : epochs) formulas_.fill(epoch.values, link.task);
    return epochs;
  }

 private:
  void read_times(const ChainLink& link, ReplicaEpochs& epochs) {
    Bound rows(times_, link.run_key, link.attempt, link.after_epoch, link.up_to_epoch);
    while (rows.next()) {
      RowReader row(rows.row());
      const std::int64_t number = row.integer();
      ReplicaEpoch& epoch = epochs[{number, row.integer() / link.stages}];
      take_greater(epoch.values["train_seconds"], row.number());
      take_greater(epoch.values["validation_seconds"], row.number());
      ++epoch.ranks;
    }
  }

  void read_metrics(const ChainLink& link, ReplicaEpochs& epochs) {
    Bound rows(metrics_, link.run_key, link.attempt, link.after_epoch, link.up_to_epoch);
    while (rows.next()) {
      const SQLite::Statement& row = rows.row();
      const std::string_view phase = row.getColumn(2).getText(), record = row.getColumn(3).getText();
      const auto mean = std::ranges::find_if(
          means(), [&](const Mean& each) { return each.phase == phase && each.record == record; });
      if (mean == means().end()) continue;
      const auto epoch =
          epochs.find({row.getColumn(0).getInt64(), row.getColumn(1).getInt64() / link.stages});
      const double weight = row.getColumn(5).getDouble();
      if (epoch == epochs.end() || weight == 0) continue;
      take_greater(epoch->second.values[mean->column], number_or_nan(row.getColumn(4)) / weight);
    }
  }

  static bool has_formulas(const std::string& task) {
    return std::ranges::any_of(models::all_metrics, [&](const models::Metric& metric) {
      return !metric.of_loss.empty() && metric.is_of(task);
    });
  }

  SQLite::Statement times_;
  SQLite::Statement metrics_;
  LossFormulas formulas_;
};

}  // namespace

std::vector<EpochRow> epoch_replicas(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    std::vector<EpochRow> found;
    ReplicaReader reader(database);
    const std::vector<ChainLink> chain = chain_of(database, experiment);
    std::map<std::int64_t, std::vector<EpochRow>> of_run;  // by replica
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const ChainLink& link = chain[i];
      for (const auto& [place, epoch] : reader.read(link))
        if (const auto [number, replica] = place; epoch.ranks == link.stages)
          of_run[replica].push_back(row_of(link, number, replica, epoch));
      if (i + 1 < chain.size() && chain[i + 1].run_key == link.run_key) continue;
      for (auto& [replica, rows] : of_run)
        found.insert(found.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
      of_run.clear();
    }
    return found;
  });
}

}  // namespace trainyard::db
