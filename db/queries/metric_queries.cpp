// Queries of measured values.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
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

// The runs of an experiment in order of first planning.
std::vector<std::string> keys_of(const Database& database, const std::string& experiment) {
  SQLite::Statement statement(database.connection(), R"sql(
    SELECT run_key FROM experiment_run WHERE experiment = ? ORDER BY first_journal_id, position)sql");
  Bound rows(statement, experiment);
  std::vector<std::string> keys;
  while (rows.next()) keys.push_back(RowReader(rows.row()).text());
  return keys;
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
  final.attempt = static_cast<int>(row.integer());
  final.launched = row.text();
  return final;
}

std::vector<FinalMetrics> finals(const Database& database, const std::string& which, const std::string& of) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(
        database.connection(),
        fmt::format(
            "SELECT f.run_key, f.model, f.strategy, f.seed{}, s.epochs_done, s.times_count, s.times_problem, "
            "s.other_share, s.attempt, a.created FROM task_final_metrics f "
            "JOIN run_state s ON s.run_key = f.run_key "
            "JOIN attempt a ON a.run_key = s.run_key AND a.attempt = s.attempt{}",
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

// A run in several experiments has the same epochs in each, so those of the first are used.
std::vector<EpochRow> epochs_of_run(const Database& database, const std::string& run_key) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(
        database.connection(),
        fmt::format("SELECT e.run_key, e.model, e.strategy, e.seed, -1, e.epoch{} FROM task_epoch_average e",
                    listed(epoch_columns(), "e.")) +
            R"sql(
      WHERE e.run_key = ?1 AND e.experiment IS (SELECT m.experiment FROM experiment_run m WHERE m.run_key = ?1
                                                ORDER BY m.first_journal_id LIMIT 1)
      ORDER BY e.epoch)sql");
    Bound rows(statement, run_key);
    std::vector<EpochRow> found;
    while (rows.next()) found.push_back(epoch_of(RowReader(rows.row())));
    return found;
  });
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

// The rows of the view time_parts. The view searches each epoch. This reads epochs in the order of their keys.
std::vector<TimeParts> time_parts(const Database& database, const std::string& experiment,
                                  const std::string& run_key) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(database.connection(),
                                "SELECT r.run_key" + each_part("AVG(e.{part}_seconds)") + R"sql(
      FROM run_in_experiment r
      CROSS JOIN attempt_chain k ON k.run_key = r.run_key
      CROSS JOIN epoch e
        ON e.run_key = k.run_key AND e.attempt = k.attempt AND e.epoch > k.after_epoch AND e.epoch <= k.up_to_epoch
      WHERE r.run_key = ?1 AND r.experiment = ?2
        AND +e.epoch IN (SELECT t.epoch FROM timed_epoch t WHERE t.run_key = ?1)
      GROUP BY r.run_key)sql");
    std::vector<TimeParts> found;
    const auto keys = run_key.empty() ? keys_of(database, experiment) : std::vector{run_key};
    for (const std::string& key : keys)
      for (Bound rows(statement, key, experiment); rows.next();)
        found.push_back(time_parts_of(RowReader(rows.row())));
    return found;
  });
}

double steps_per_epoch(const Database& database, const std::string& run_key) {
  return translated(database.connection(), [&] {
    SQLite::Statement statement(
        database.connection(),
        "SELECT AVG(json_extract(e.extra, '$.steps')) FROM timed_epoch t JOIN epoch e "
        "ON e.run_key = t.run_key AND e.attempt = t.attempt AND e.epoch = +t.epoch WHERE t.run_key = ?");
    Bound rows(statement, run_key);
    return rows.next() ? RowReader(rows.row()).number() : not_defined;
  });
}

// The rows of the views task_epoch_average and task_epoch_replica, read in one pass over `attempt_epoch`, or
// over `epoch` and `metric`, in the order of their primary keys. Reports on a million rows need this. A test
// compares them with the views.

namespace {

// An attempt of a run, which contributes the epochs after `after_epoch` up to `up_to_epoch`.
struct ChainLink {
  std::string run_key;
  std::string model;
  std::string strategy;
  std::int64_t seed = 0;
  std::string task;
  std::int64_t stages = 1;
  bool finished = false;
  std::int64_t world_size = 1;
  std::int64_t attempt = 0;
  std::int64_t after_epoch = 0;
  std::int64_t up_to_epoch = 0;
};

std::vector<ChainLink> chain_of(const Database& database, const std::string& experiment) {
  SQLite::Statement statement(database.connection(), R"sql(
    SELECT r.run_key, r.model, m.strategy, r.seed, r.task, r.stages, c.status = 'finished',
           c.world_size, c.attempt, c.after_epoch, c.up_to_epoch
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
    link.finished = row.flag();
    link.world_size = row.integer();
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

EpochRow row_of(const ChainLink& link, std::int64_t epoch, std::int64_t replica) {
  EpochRow row;
  row.run_key = link.run_key;
  row.model = link.model;
  row.strategy = link.strategy;
  row.seed = link.seed;
  row.replica = replica;
  row.epoch = epoch;
  return row;
}

// Room for the epochs of the runs of an experiment, times `factor`, so that the rows are not moved later.
void reserve_epochs(std::vector<EpochRow>& rows, const Database& database, const std::string& experiment,
                    const char* factor) {
  constexpr std::int64_t most = 10'000'000;  // also if the database is damaged
  SQLite::Statement statement(database.connection(), fmt::format(R"sql(
    SELECT TOTAL(s.epochs_done * {})
    FROM experiment_run m JOIN run r ON r.run_key = m.run_key JOIN run_state s ON s.run_key = m.run_key
    WHERE m.experiment = ?)sql",
                                                                 factor));
  Bound total(statement, experiment);
  if (total.next())
    rows.reserve(static_cast<std::size_t>(std::clamp<double>(total.row().getColumn(0).getDouble(), 0, most)));
}

// Reader of rows of `attempt_epoch`, one link after another.
class StoredReader {
 public:
  explicit StoredReader(const Database& database)
      : epochs_(database.connection(), "SELECT epoch, train_seconds, validation_seconds" +
                                           each_mean(epoch_phases, "{phase}_{name}") +
                                           R"sql(, energy_joules, peak_device_bytes FROM attempt_epoch
          WHERE run_key = ? AND attempt = ? AND epoch > ? AND epoch <= ? AND ranks BETWEEN ? AND ?
          ORDER BY epoch)sql") {}

  // While a run is not finished, only epochs that all ranks have written.
  void append_averages(const ChainLink& link, std::vector<EpochRow>& rows) {
    constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
    append(link, -1, link.finished ? 0 : link.world_size, any, rows);
  }
  // The epochs of the rank of an attempt with one rank. Energy and memory have averages only.
  void append_only_rank(const ChainLink& link, std::vector<EpochRow>& rows) { append(link, 0, 1, 1, rows); }

 private:
  void append(const ChainLink& link, std::int64_t replica, std::int64_t fewest, std::int64_t most,
              std::vector<EpochRow>& rows) {
    Bound found(epochs_, link.run_key, link.attempt, link.after_epoch, link.up_to_epoch, fewest, most);
    while (found.next()) {
      RowReader row(found.row());
      EpochRow& epoch = rows.emplace_back(row_of(link, row.integer(), replica));
      epoch["train_seconds"] = row.number();
      epoch["validation_seconds"] = row.number();
      for (const Mean& mean : means()) epoch[mean.column] = row.number();
      if (replica >= 0) continue;
      epoch["energy_joules"] = row.number();
      epoch["peak_device_bytes"] = row.number();
    }
  }

  SQLite::Statement epochs_;
};

// Reader of the replicas of one link after another.
class ReplicaReader {
 public:
  explicit ReplicaReader(const Database& database)
      : times_(database.connection(), R"sql(
          SELECT epoch, rank, train_seconds, validation_seconds FROM epoch
          WHERE run_key = ? AND attempt = ? AND epoch > ? AND epoch <= ? ORDER BY epoch, rank)sql"),
        metrics_(database.connection(), R"sql(
          SELECT epoch, rank, phase, name, sum, weight FROM metric
          WHERE run_key = ? AND attempt = ? AND epoch > ? AND epoch <= ? ORDER BY epoch, phase, name, rank)sql") {
  }

  void read(const ChainLink& link) {
    const std::size_t before = epochs_.size();
    read_times(link, before);
    read_metrics(link, epochs_.begin() + static_cast<std::ptrdiff_t>(before));
  }

  // Append the epochs with all their ranks that were read, by replica.
  void move_to(std::vector<EpochRow>& rows) {
    std::map<std::int64_t, std::vector<EpochRow*>> by_replica;
    for (ReplicaEpoch& epoch : epochs_)
      if (epoch.ranks == epoch.stages) by_replica[epoch.row.replica].push_back(&epoch.row);
    for (const auto& [replica, of_replica] : by_replica)
      for (EpochRow* row : of_replica) rows.push_back(std::move(*row));
    epochs_.clear();
  }

 private:
  struct ReplicaEpoch {
    EpochRow row;
    std::int64_t stages = 1;
    std::int64_t ranks = 0;  // that were read
  };

  void read_times(const ChainLink& link, std::size_t before) {
    Bound rows(times_, link.run_key, link.attempt, link.after_epoch, link.up_to_epoch);
    while (rows.next()) {
      RowReader row(rows.row());
      const std::int64_t number = row.integer(), replica = row.integer() / link.stages;
      if (epochs_.size() == before || epochs_.back().row.epoch != number ||
          epochs_.back().row.replica != replica)
        epochs_.push_back({row_of(link, number, replica), link.stages});
      ReplicaEpoch& epoch = epochs_.back();
      take_greater(epoch.row["train_seconds"], row.number());
      take_greater(epoch.row["validation_seconds"], row.number());
      ++epoch.ranks;
    }
  }

  // Only the last stage of a replica writes metrics. They are in order of epochs, so each search is among the
  // replicas of one epoch, which begin at `first`.
  void read_metrics(const ChainLink& link, std::vector<ReplicaEpoch>::iterator first) {
    const auto epoch_of = [](const ReplicaEpoch& epoch) { return epoch.row.epoch; };
    const auto replica_of = [](const ReplicaEpoch& epoch) { return epoch.row.replica; };
    auto last = first;
    Bound rows(metrics_, link.run_key, link.attempt, link.after_epoch, link.up_to_epoch);
    while (rows.next()) {
      const SQLite::Statement& row = rows.row();
      const std::int64_t number = row.getColumn(0).getInt64(),
                         replica = row.getColumn(1).getInt64() / link.stages;
      if (first == last || epoch_of(*first) != number) {
        first = std::ranges::lower_bound(last, epochs_.end(), number, {}, epoch_of);
        last = std::ranges::upper_bound(first, epochs_.end(), number, {}, epoch_of);
      }
      const auto epoch = std::ranges::lower_bound(first, last, replica, {}, replica_of);
      if (epoch == last || replica_of(*epoch) != replica) continue;
      const std::string_view phase = row.getColumn(2).getText(), record = row.getColumn(3).getText();
      const auto mean = std::ranges::find_if(
          means(), [&](const Mean& each) { return each.phase == phase && each.record == record; });
      const double weight = row.getColumn(5).getDouble();
      if (mean == means().end() || weight == 0) continue;
      take_greater(epoch->row[mean->column], number_or_nan(row.getColumn(4)) / weight);
    }
  }

  SQLite::Statement times_;
  SQLite::Statement metrics_;
  std::vector<ReplicaEpoch> epochs_;  // of one run; by link, epoch and replica
};

bool has_formulas(const std::string& task) {
  return std::ranges::any_of(models::all_metrics, [&](const models::Metric& metric) {
    return !metric.of_loss.empty() && metric.is_of(task);
  });
}

// Fill the rows from `before` on, which belong to `link`.
void fill_formulas(LossFormulas& formulas, const ChainLink& link, std::vector<EpochRow>& rows,
                   std::size_t before) {
  if (!has_formulas(link.task)) return;
  for (std::size_t i = before; i < rows.size(); ++i) formulas.fill(rows[i], link.task);
}

}  // namespace

std::vector<EpochRow> epoch_averages(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    std::vector<EpochRow> found;
    reserve_epochs(found, database, experiment, "1");
    StoredReader reader(database);
    LossFormulas formulas(database);
    for (const ChainLink& link : chain_of(database, experiment)) {
      const std::size_t before = found.size();
      reader.append_averages(link, found);
      fill_formulas(formulas, link, found, before);
    }
    return found;
  });
}

// An epoch of an attempt with one rank is stored in `attempt_epoch` already.
std::vector<EpochRow> epoch_replicas(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    std::vector<EpochRow> found;
    reserve_epochs(found, database, experiment, "r.replicas");
    StoredReader stored(database);
    ReplicaReader reader(database);
    LossFormulas formulas(database);
    const std::vector<ChainLink> chain = chain_of(database, experiment);
    for (auto link = chain.begin(); link != chain.end();) {
      const auto next = std::ranges::find_if(
          link, chain.end(), [&](const ChainLink& other) { return other.run_key != link->run_key; });
      const std::span<const ChainLink> run(link, next);
      const std::size_t before = found.size();
      const bool one_rank = std::ranges::all_of(
          run, [](const ChainLink& one) { return one.world_size == 1 && one.stages == 1; });
      for (const ChainLink& one : run)
        if (one_rank)
          stored.append_only_rank(one, found);
        else
          reader.read(one);
      reader.move_to(found);
      fill_formulas(formulas, *link, found, before);
      link = next;
    }
    return found;
  });
}

}  // namespace trainyard::db
