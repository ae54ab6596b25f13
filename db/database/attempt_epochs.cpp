#include "db/database/attempt_epochs.h"

#include "db/database/binding.h"
#include "db/database/mean_over_ranks.h"

namespace trainyard::db {

namespace {

// Each device once, whose ranks all say what it took; nothing where a device's is not known. Most epochs have
// none.
constexpr const char* energy_of_devices = R"sql(CASE WHEN COUNT(e.energy_joules) > 0 THEN (
  SELECT IIF(COUNT(joules) = COUNT(*), SUM(joules), NULL)
  FROM (SELECT MAX(x.energy_joules) AS joules FROM epoch x
        WHERE x.run_key = e.run_key AND x.attempt = e.attempt AND x.epoch = e.epoch
        GROUP BY COALESCE(x.energy_device, x.rank))) END)sql";

// The rows of the epochs `e` for which `of` holds.
std::string put_epochs(const std::string& of) {
  static constexpr const char* same_epoch =
      "x.run_key = e.run_key AND x.attempt = e.attempt AND x.epoch = e.epoch";
  return "INSERT OR REPLACE INTO attempt_epoch (run_key, attempt, epoch, ranks, train_loss, train_accuracy, "
         "validation_loss, validation_accuracy, train_seconds, validation_seconds, energy_joules, "
         "peak_device_bytes) "
         "SELECT e.run_key, e.attempt, e.epoch, COUNT(*), " +
         mean_over_ranks(same_epoch, "train", "loss") + ", " +
         mean_over_ranks(same_epoch, "train", "correct") + ", " +
         mean_over_ranks(same_epoch, "validation", "loss") + ", " +
         mean_over_ranks(same_epoch, "validation", "correct") +
         ", MAX(e.train_seconds), MAX(e.validation_seconds), " + energy_of_devices +
         ", MAX(e.peak_device_bytes) FROM epoch e WHERE " + of + " GROUP BY e.run_key, e.attempt, e.epoch";
}

}  // namespace

AttemptEpochs::AttemptEpochs(SQLite::Database& connection)
    : put_(connection, put_epochs("e.run_key = ? AND e.attempt = ? AND e.epoch = ?")) {}

void AttemptEpochs::put(const std::string& run_key, int attempt, std::int64_t epoch) {
  execute(put_, run_key, attempt, epoch);
}

void make_attempt_epochs(SQLite::Database& connection) {
  connection.exec("DELETE FROM attempt_epoch");
  connection.exec(put_epochs("TRUE"));
}

}  // namespace trainyard::db
