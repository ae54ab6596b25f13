#include "db/queries/step_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>
#include <nlohmann/json.hpp>

#include "db/database/metric_sql.h"
#include "db/database/statements.h"
#include "experiments/protocol/time_parts.h"

namespace trainyard::db {

namespace {

struct RankEpoch {
  std::int64_t rank = 0;
  double train_seconds = 0;
  SecondsByPart passed;
  std::string extra;  // JSON, parsed only for the epochs in the middle
};

struct WholeEpoch {
  std::string run_key;
  std::int64_t epoch = 0;
  std::int64_t world_size = 1;
  double slowest = 0;
  std::vector<RankEpoch> ranks;
  std::string transport;
};

RankEpoch rank_epoch_of(RowReader& row) {
  RankEpoch rank;
  rank.rank = row.integer();
  rank.train_seconds = row.number();
  for (const std::string_view part : experiments::time_parts)
    if (const double seconds = row.number(); !std::isnan(seconds)) rank.passed[std::string(part)] = seconds;
  rank.extra = row.text();
  return rank;
}

// Call `take` for each timed epoch of finished runs, ordered by run, with its ranks in order. The `+` is
// explained at the view time_parts.
template <class Take>
void for_each_epoch(const Database& database, const std::string& experiment, const Take& take) {
  SQLite::Statement statement(database.connection(),
                              "SELECT m.run_key, e.epoch, a.world_size, e.rank, e.train_seconds" +
                                  each_part("e.{part}_seconds") + R"sql(, COALESCE(e.extra, ''),
           CASE WHEN e.rank = 0 THEN COALESCE(json_extract(p.start_extra, '$.transport'), '') END
    FROM experiment_run m
    CROSS JOIN run_state s ON s.run_key = m.run_key AND s.status = 'finished'
    CROSS JOIN timed_epoch t ON t.run_key = m.run_key
    CROSS JOIN attempt a ON a.run_key = t.run_key AND a.attempt = t.attempt
    CROSS JOIN epoch e ON e.run_key = t.run_key AND e.attempt = t.attempt AND e.epoch = +t.epoch
    LEFT JOIN process p ON e.rank = 0 AND p.run_key = e.run_key AND p.attempt = e.attempt AND p.rank = 0
    WHERE m.experiment = ? AND e.train_seconds IS NOT NULL
    ORDER BY m.first_journal_id, m.position, e.epoch, e.rank)sql");
  Bound rows(statement, experiment);
  WholeEpoch epoch;
  while (rows.next()) {
    RowReader row(rows.row());
    std::string run_key = row.text();
    const std::int64_t number = row.integer();
    if (run_key != epoch.run_key || number != epoch.epoch) {
      if (!epoch.ranks.empty()) take(std::exchange(epoch, {}));
      epoch.run_key = std::move(run_key);
      epoch.epoch = number;
    }
    epoch.world_size = row.integer();
    epoch.ranks.push_back(rank_epoch_of(row));
    if (std::string transport = row.text(); epoch.ranks.back().rank == 0) epoch.transport = transport;
    epoch.slowest = std::max(epoch.slowest, epoch.ranks.back().train_seconds);
  }
  if (!epoch.ranks.empty()) take(std::move(epoch));
}

double number_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

// Add the recorded values of a rank times `weight`.
void add(RankTimes& times, double& steps, const RankEpoch& epoch, double weight) {
  for (const auto& [part, seconds] : epoch.passed) times.passed[part] += weight * seconds;
  const auto extra = nlohmann::json::parse(epoch.extra, nullptr, /*allow_exceptions=*/false);
  if (!extra.is_object()) return;
  if (const double number = number_of(extra, "steps"); number > 0 && epoch.rank == 0)
    steps += weight * number;
  if (const double seconds = number_of(extra, "transfer_seconds"); !std::isnan(seconds))
    times.passed["transfer"] += weight * seconds;
  const auto on_core = extra.find("core_seconds");
  if (on_core == extra.end() || !on_core->is_object()) return;
  for (const auto& [part, seconds] : on_core->items())
    if (seconds.is_number()) times.on_core[part] += weight * seconds.get<double>();
}

MedianEpoch middle_of(std::vector<WholeEpoch> epochs) {
  std::ranges::sort(epochs, {}, &WholeEpoch::slowest);
  const std::size_t first = (epochs.size() - 1) / 2;
  const std::size_t last = epochs.size() / 2;
  const double weight = first == last ? 1 : 0.5;
  MedianEpoch middle{epochs.front().run_key, 0, 0, {}, epochs.back().transport};
  middle.ranks.resize(epochs.front().ranks.size());
  for (std::size_t i = first; i <= last; ++i) {
    middle.train_seconds += weight * epochs[i].slowest;
    for (std::size_t r = 0; r < middle.ranks.size(); ++r)
      add(middle.ranks[r], middle.steps, epochs[i].ranks[r], weight);
  }
  return middle;
}

}  // namespace

std::vector<MedianEpoch> middle_epochs(const Database& database, const std::string& experiment) {
  return translated(database.connection(), [&] {
    std::vector<MedianEpoch> found;
    std::vector<WholeEpoch> of_run;
    const auto finish_run = [&] {
      if (!of_run.empty()) found.push_back(middle_of(std::exchange(of_run, {})));
    };
    for_each_epoch(database, experiment, [&](WholeEpoch epoch) {
      if (!of_run.empty() && of_run.front().run_key != epoch.run_key) finish_run();
      if (static_cast<std::int64_t>(epoch.ranks.size()) == epoch.world_size)
        of_run.push_back(std::move(epoch));
    });
    finish_run();
    return found;
  });
}

}  // namespace trainyard::db
