// The epochs of all replicas of an experiment in one pass over `epoch` and `metric`, in the order of their
// primary keys: what the view task_epoch_replica says row by row, for reports on a million rows. A test holds
// it against the view.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/database/binding.h"
#include "db/database/errors.h"
#include "db/database/rows.h"
#include "db/queries/queries.h"

namespace trainyard::db {

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
