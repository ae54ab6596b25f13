// What verdicts are made of, in one pass over the times of an experiment and a look at the last metrics of
// each run: what the view task_final_metrics says, for a million rows in less than a second. A test holds it
// against the view.
#include <algorithm>
#include <cmath>
#include <map>

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/binding.h"
#include "db/errors.h"
#include "db/queries.h"
#include "db/rows.h"
#include "db/timed_epochs.h"

namespace trainyard::db {

namespace {

// A part of a finished run: the epochs after `after_epoch` up to `up_to_epoch` of one attempt.
struct FinishedPart {
  FinalMetrics run;
  std::string task;
  std::int64_t counted_attempt = 0;
  std::int64_t attempt = 0;
  std::int64_t after_epoch = 0;
  std::int64_t up_to_epoch = 0;
};

std::vector<FinishedPart> finished_parts(const Database& database, const std::string& experiment) {
  SQLite::Statement statement(database.connection(), R"sql(
    SELECT r.run_key, r.model, m.strategy, r.seed, k.times_count, r.task, k.attempt, c.attempt, c.after_epoch,
           c.up_to_epoch
    FROM experiment_run m
    JOIN run r ON r.run_key = m.run_key
    JOIN run_chain c ON c.run_key = m.run_key
    JOIN run_state k ON k.run_key = m.run_key
    WHERE m.experiment = ? AND c.status = 'finished' ORDER BY m.first_journal_id, m.position, c.attempt)sql");
  std::vector<FinishedPart> parts;
  Bound rows(statement, experiment);
  while (rows.next()) {
    RowReader row(rows.row());
    FinishedPart part;
    part.run.run_key = row.text();
    part.run.model = row.text();
    part.run.strategy = row.text();
    part.run.seed = row.integer();
    part.run.times_count = row.flag();
    part.task = row.text();
    part.counted_attempt = row.integer();
    part.attempt = row.integer();
    part.after_epoch = row.integer();
    part.up_to_epoch = row.integer();
    parts.push_back(std::move(part));
  }
  return parts;
}

// Of a metric over ranks; not whole where a sum was no number.
struct RankTotal {
  double sum = 0;
  double weight = 0;
  bool whole = true;
};
using RankTotals = std::map<std::pair<std::string, std::string>, RankTotal>;  // by phase and name

double mean_of(const RankTotals& totals, const char* phase, const char* name) {
  const auto found = totals.find({phase, name});
  if (found == totals.end() || !found->second.whole || found->second.weight == 0) return not_defined;
  return found->second.sum / found->second.weight;
}

// As in the view, see db/README.md.
double bleu_of(const RankTotals& totals) {
  double exponent = 0;
  for (const char* name : {"bleu_1", "bleu_2", "bleu_3", "bleu_4", "bleu_length"}) {
    const auto found = totals.find({"test", name});
    if (found == totals.end() || !found->second.whole) return not_defined;
  }
  for (const char* name : {"bleu_1", "bleu_2", "bleu_3", "bleu_4", "bleu_length"}) {
    const RankTotal& total = totals.at({"test", name});
    if (total.sum <= 0) return 0;
    const bool length = std::string(name) == "bleu_length";
    exponent += length ? std::min(0.0, 1 - total.weight / total.sum) : std::log(total.sum / total.weight) / 4;
  }
  return std::exp(exponent);
}

double perplexity_of(const std::string& task, double loss) {
  return task == "translation" && loss < 709 ? std::exp(loss) : not_defined;
}

double psnr_of(const std::string& task, double loss) {
  return task == "reconstruction" && loss > 0 ? -10 * std::log10(loss) : not_defined;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return not_defined;
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// What the epochs of a run have said so far.
struct TimesSoFar {
  struct Timed {
    bool first_of_attempt = false;
    double seconds = 0;
  };
  std::vector<Timed> train_seconds;         // of epochs that have one
  double validation_seconds = not_defined;  // in all
  std::int64_t epochs = 0;
  std::int64_t last_epoch = 0;
  std::int64_t last_attempt = 0;
};

class FinalReader {
 public:
  explicit FinalReader(const Database& database)
      : times_(database.connection(), R"sql(
          SELECT epoch, MAX(train_seconds), MAX(validation_seconds) FROM epoch
          WHERE run_key = ? AND attempt = ? AND epoch > ? AND epoch <= ? GROUP BY epoch)sql"),
        metrics_(database.connection(), R"sql(
          SELECT phase, name, sum, weight FROM metric WHERE run_key = ? AND attempt = ? AND epoch = ?)sql") {}

  void add_times(const FinishedPart& part, TimesSoFar& times) {
    Bound rows(times_, part.run.run_key, part.attempt, part.after_epoch, part.up_to_epoch);
    while (rows.next()) {
      RowReader row(rows.row());
      times.last_epoch = row.integer();
      times.last_attempt = part.attempt;
      ++times.epochs;
      const double train = row.number();
      const double validation = row.number();
      if (!std::isnan(train))
        times.train_seconds.push_back({times.last_epoch == part.after_epoch + 1, train});
      if (std::isnan(validation)) continue;
      times.validation_seconds =
          (std::isnan(times.validation_seconds) ? 0 : times.validation_seconds) + validation;
    }
  }

  FinalMetrics final_of(const FinishedPart& part, const TimesSoFar& times) {
    constexpr std::int64_t after_training = 0;
    const RankTotals last = totals(part.run.run_key, times.last_attempt, times.last_epoch);
    const RankTotals test = totals(part.run.run_key, part.counted_attempt, after_training);
    FinalMetrics final = part.run;
    final.train_loss = mean_of(last, "train", "loss");
    final.train_accuracy = mean_of(last, "train", "correct");
    final.validation_loss = mean_of(last, "validation", "loss");
    final.validation_accuracy = mean_of(last, "validation", "correct");
    final.test_loss = mean_of(test, "test", "loss");
    final.test_accuracy = mean_of(test, "test", "correct");
    final.train_perplexity = perplexity_of(part.task, final.train_loss);
    final.validation_perplexity = perplexity_of(part.task, final.validation_loss);
    final.test_perplexity = perplexity_of(part.task, final.test_loss);
    final.train_psnr = psnr_of(part.task, final.train_loss);
    final.validation_psnr = psnr_of(part.task, final.validation_loss);
    final.test_psnr = psnr_of(part.task, final.test_loss);
    final.test_bleu = bleu_of(test);
    final.epochs = times.epochs;
    final.total_validation_seconds = times.validation_seconds;
    std::vector<double> seconds;
    for (const auto& epoch : timed(times.train_seconds)) seconds.push_back(epoch.seconds);
    final.epoch_train_seconds = median_of(std::move(seconds));
    return final;
  }

 private:
  RankTotals totals(const std::string& run_key, std::int64_t attempt, std::int64_t epoch) {
    RankTotals found;
    Bound rows(metrics_, run_key, attempt, epoch);
    while (rows.next()) {
      RowReader row(rows.row());
      const std::string phase = row.text();
      RankTotal& total = found[{phase, row.text()}];
      const double sum = row.number();
      total.whole = total.whole && !std::isnan(sum);
      total.sum += sum;
      total.weight += row.number_or_zero();
    }
    return found;
  }

  SQLite::Statement times_;
  SQLite::Statement metrics_;
};

}  // namespace

std::vector<FinalMetrics> final_metrics(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    const std::vector<FinishedPart> parts = finished_parts(database, experiment);
    FinalReader reader(database);
    std::vector<FinalMetrics> finals;
    TimesSoFar times;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      reader.add_times(parts[i], times);
      if (i + 1 < parts.size() && parts[i + 1].run.run_key == parts[i].run.run_key) continue;
      finals.push_back(reader.final_of(parts[i], times));
      times = {};
    }
    return finals;
  });
}

}  // namespace trainyard::db
