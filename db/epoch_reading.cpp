// All epochs of an experiment in one pass over `epoch` and `metric`, in the order of their primary keys: what
// the views say row by row, for reports on a million rows. A test holds it against the views.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/binding.h"
#include "db/errors.h"
#include "db/queries.h"
#include "db/rows.h"
#include "db/timed_epochs.h"

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
  bool finished = false;
  std::int64_t attempt = 0;
  std::int64_t world_size = 1;
  std::int64_t after_epoch = 0;
  std::int64_t up_to_epoch = 0;
};

std::vector<ChainLink> chain_of(const Database& database, const std::string& experiment) {
  SQLite::Statement statement(database.connection(), R"sql(
    SELECT r.run_key, r.model, m.strategy, r.seed, r.task, r.stages, c.status = 'finished', c.attempt, c.world_size,
           c.after_epoch, c.up_to_epoch
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
    link.attempt = row.integer();
    link.world_size = row.integer();
    link.after_epoch = row.integer();
    link.up_to_epoch = row.integer();
    chain.push_back(std::move(link));
  }
  return chain;
}

// Σ sum / Σ weight, NaN where nothing was added or a sum was no number.
struct Mean {
  double sum = 0;
  double weight = 0;
  int count = 0;
  bool whole = true;
  void add(double one_sum, double one_weight) {
    sum += std::isnan(one_sum) ? 0 : one_sum;
    weight += one_weight;
    whole = whole && !std::isnan(one_sum);
    ++count;
  }
  double value() const { return count > 0 && whole && weight != 0 ? sum / weight : not_defined; }
};

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
void take_slower(double& slowest, double seconds) {
  if (!(slowest >= seconds)) slowest = std::isnan(seconds) ? slowest : seconds;
}

// One epoch of one attempt while it is read: in all, and by replica.
struct Sums {
  std::array<Mean, means.size()> of;
  double train_seconds = not_defined;
  double validation_seconds = not_defined;
  std::int64_t ranks = 0;
};
constexpr std::array time_part_names{"data",   "forward",   "backward", "exposed_communication",
                                     "bubble", "optimizer", "other"};

struct OneEpoch {
  bool first_of_attempt = false;
  std::array<Mean, time_part_names.size()> parts;  // over ranks, each of weight 1
  Sums all;
  std::map<std::int64_t, Sums> replicas;
};

EpochRow row_of(const ChainLink& link, std::int64_t epoch, std::int64_t replica, const Sums& sums) {
  EpochRow row;
  row.run_key = link.run_key;
  row.model = link.model;
  row.strategy = link.strategy;
  row.seed = link.seed;
  row.replica = replica;
  row.epoch = epoch;
  for (std::size_t i = 0; i < means.size(); ++i) row.*means[i] = sums.of[i].value();
  row.train_seconds = sums.train_seconds;
  row.validation_seconds = sums.validation_seconds;
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
class EpochReader {
 public:
  explicit EpochReader(const Database& database)
      : times_(database.connection(), R"sql(
          SELECT epoch, rank, train_seconds, validation_seconds, data_seconds, forward_seconds,
                 backward_seconds, exposed_communication_seconds, bubble_seconds, optimizer_seconds,
                 other_seconds
          FROM epoch
          WHERE run_key = ? AND attempt = ? AND epoch > ? AND epoch <= ?)sql"),
        metrics_(database.connection(), R"sql(
          SELECT epoch, rank, phase, name, sum, weight FROM metric
          WHERE run_key = ? AND attempt = ? AND epoch > ? AND epoch <= ?)sql") {}

  std::map<std::int64_t, OneEpoch> read(const ChainLink& link) {
    std::map<std::int64_t, OneEpoch> epochs;
    read_times(link, epochs);
    read_metrics(link, epochs);
    return epochs;
  }

 private:
  void read_times(const ChainLink& link, std::map<std::int64_t, OneEpoch>& epochs) {
    Bound rows(times_, link.run_key, link.attempt, link.after_epoch, link.up_to_epoch);
    while (rows.next()) {
      RowReader row(rows.row());
      const std::int64_t number = row.integer();
      OneEpoch& epoch = epochs[number];
      epoch.first_of_attempt = number == link.after_epoch + 1;
      Sums& replica = epoch.replicas[row.integer() / link.stages];
      const double train = row.number();
      const double validation = row.number();
      for (Mean& part : epoch.parts)
        if (const double seconds = row.number(); !std::isnan(seconds)) part.add(seconds, 1);
      for (Sums* sums : {&epoch.all, &replica}) {
        take_slower(sums->train_seconds, train);
        take_slower(sums->validation_seconds, validation);
        ++sums->ranks;
      }
    }
  }

  void read_metrics(const ChainLink& link, std::map<std::int64_t, OneEpoch>& epochs) {
    Bound rows(metrics_, link.run_key, link.attempt, link.after_epoch, link.up_to_epoch);
    auto epoch = epochs.end();
    while (rows.next()) {
      const SQLite::Statement& row = rows.row();
      const std::int64_t number = row.getColumn(0).getInt64();
      if (epoch == epochs.end() || epoch->first != number) epoch = epochs.find(number);
      const auto place = place_of(row.getColumn(2).getText(), row.getColumn(3).getText());
      if (epoch == epochs.end() || !place) continue;
      const double sum = number_or_nan(row.getColumn(4));
      const double weight = row.getColumn(5).getDouble();
      const std::int64_t replica = row.getColumn(1).getInt64() / link.stages;
      epoch->second.all.of[*place].add(sum, weight);
      if (const auto found = epoch->second.replicas.find(replica); found != epoch->second.replicas.end())
        found->second.of[*place].add(sum, weight);
    }
  }

  SQLite::Statement times_;
  SQLite::Statement metrics_;
};

// What is gathered of one run, link by link.
struct RunEpochs {
  std::vector<EpochRow> averages;
  std::map<std::int64_t, std::vector<EpochRow>> replicas;
  std::vector<OneEpoch> with_time;
};

void append(const ChainLink& link, const std::map<std::int64_t, OneEpoch>& epochs, RunEpochs& run) {
  for (const auto& [number, epoch] : epochs) {
    if (link.finished || epoch.all.ranks >= link.world_size) {
      run.averages.push_back(row_of(link, number, -1, epoch.all));
      if (!std::isnan(epoch.all.train_seconds)) run.with_time.push_back(epoch);
    }
    for (const auto& [replica, sums] : epoch.replicas)
      if (sums.ranks == link.stages) run.replicas[replica].push_back(row_of(link, number, replica, sums));
  }
}

// Mean over the epochs whose times are compared and over ranks.
TimeParts time_parts_of(const ChainLink& link, const RunEpochs& run) {
  std::array<Mean, time_part_names.size()> parts;
  for (const OneEpoch& epoch : timed(run.with_time))
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (epoch.parts[i].count > 0) parts[i].add(epoch.parts[i].sum, epoch.parts[i].weight);
  TimeParts times{link.run_key, link.model, link.strategy, link.seed, {}};
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].count > 0) times.seconds[time_part_names.at(i)] = parts[i].value();
  return times;
}

template <typename Row>
void move_to(std::vector<Row>& all, std::vector<Row>& some) {
  all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
}

}  // namespace

Epochs epochs_of_experiment(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    Epochs found;
    EpochReader reader(database);
    const std::vector<ChainLink> chain = chain_of(database, experiment);
    RunEpochs run;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      append(chain[i], reader.read(chain[i]), run);
      if (i + 1 < chain.size() && chain[i + 1].run_key == chain[i].run_key) continue;
      if (!run.with_time.empty()) found.times.push_back(time_parts_of(chain[i], run));
      move_to(found.averages, run.averages);
      for (auto& [replica, rows] : run.replicas) move_to(found.replicas, rows);
      run = {};
    }
    return found;
  });
}

}  // namespace trainyard::db
