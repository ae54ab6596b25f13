// Questions about what was measured.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/database/statements.h"
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

// The epochs of all replicas of an experiment in one pass over `epoch` and `metric`, in the order of their
// primary keys: what the view task_epoch_replica says row by row, for reports on a million rows. A test holds
// it against the view.

namespace {

// A part of a run: the epochs after `after_epoch` up to `up_to_epoch` of one attempt.
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

constexpr std::array<double EpochRow::*, 4> means{&EpochRow::train_loss, &EpochRow::train_accuracy,
                                                  &EpochRow::validation_loss, &EpochRow::validation_accuracy};

// Which of `means` a metric is; nothing: another one.
std::optional<std::size_t> place_of(const char* phase, const char* name) {
  const bool train = std::strcmp(phase, "train") == 0;
  if (!train && std::strcmp(phase, "validation") != 0) return std::nullopt;
  const std::size_t first = train ? 0 : 2;
  if (std::strcmp(name, "loss") == 0) return first;
  if (std::strcmp(name, "correct") == 0) return first + 1;
  return std::nullopt;
}

// SQL's MAX: what is no number is left out.
void take_greater(double& greatest, double value) {
  if (!(greatest >= value)) greatest = std::isnan(value) ? greatest : value;
}

// An epoch of a replica while it is read. Of its stages only the last writes metrics.
struct ReplicaEpoch {
  std::array<double, means.size()> of{not_defined, not_defined, not_defined, not_defined};
  double train_seconds = not_defined;
  double validation_seconds = not_defined;
  std::int64_t ranks = 0;
};
using ReplicaEpochs = std::map<std::pair<std::int64_t, std::int64_t>, ReplicaEpoch>;  // by (epoch, replica)

EpochRow row_of(const ChainLink& link, std::int64_t epoch, std::int64_t replica, const ReplicaEpoch& of) {
  EpochRow row;
  row.run_key = link.run_key;
  row.model = link.model;
  row.strategy = link.strategy;
  row.seed = link.seed;
  row.replica = replica;
  row.epoch = epoch;
  for (std::size_t i = 0; i < means.size(); ++i) row.*means[i] = of.of[i];
  row.train_seconds = of.train_seconds;
  row.validation_seconds = of.validation_seconds;
  const auto perplexity = [](double loss) { return loss < 709 ? std::exp(loss) : not_defined; };
  const auto psnr = [](double loss) { return loss > 0 ? -10 * std::log10(loss) : not_defined; };
  if (link.task == "translation") {
    row.train_perplexity = perplexity(row.train_loss);
    row.validation_perplexity = perplexity(row.validation_loss);
  }
  if (link.task == "reconstruction") {
    row.train_psnr = psnr(row.train_loss);
    row.validation_psnr = psnr(row.validation_loss);
  }
  return row;
}

// Reads link after link with two statements.
class ReplicaReader {
 public:
  explicit ReplicaReader(const Database& database)
      : times_(database.connection(), R"sql(
          SELECT epoch, rank, train_seconds, validation_seconds FROM epoch
          WHERE run_key = ? AND attempt = ? AND epoch > ? AND epoch <= ?)sql"),
        metrics_(database.connection(), R"sql(
          SELECT epoch, rank, phase, name, sum, weight FROM metric
          WHERE run_key = ? AND attempt = ? AND epoch > ? AND epoch <= ?)sql") {}

  ReplicaEpochs read(const ChainLink& link) {
    ReplicaEpochs epochs;
    read_times(link, epochs);
    read_metrics(link, epochs);
    return epochs;
  }

 private:
  void read_times(const ChainLink& link, ReplicaEpochs& epochs) {
    Bound rows(times_, link.run_key, link.attempt, link.after_epoch, link.up_to_epoch);
    while (rows.next()) {
      RowReader row(rows.row());
      const std::int64_t number = row.integer();
      ReplicaEpoch& epoch = epochs[{number, row.integer() / link.stages}];
      take_greater(epoch.train_seconds, row.number());
      take_greater(epoch.validation_seconds, row.number());
      ++epoch.ranks;
    }
  }

  void read_metrics(const ChainLink& link, ReplicaEpochs& epochs) {
    Bound rows(metrics_, link.run_key, link.attempt, link.after_epoch, link.up_to_epoch);
    while (rows.next()) {
      const SQLite::Statement& row = rows.row();
      const auto place = place_of(row.getColumn(2).getText(), row.getColumn(3).getText());
      if (!place) continue;
      const auto epoch =
          epochs.find({row.getColumn(0).getInt64(), row.getColumn(1).getInt64() / link.stages});
      const double weight = row.getColumn(5).getDouble();
      if (epoch == epochs.end() || weight == 0) continue;
      take_greater(epoch->second.of[*place], number_or_nan(row.getColumn(4)) / weight);
    }
  }

  SQLite::Statement times_;
  SQLite::Statement metrics_;
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
