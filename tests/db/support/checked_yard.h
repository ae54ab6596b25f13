// A yard that checks its database when it is destroyed: the stored rows must equal values computed from the
// records, and `epoch_replicas` must equal the view.
#pragma once

#include <cmath>

#include <doctest/doctest.h>

#include "db/queries/queries.h"
#include "tests/db/support/from_epochs.h"
#include "tests/db/support/yard.h"

namespace trainyard::db::testing {

// Compares epoch_replicas(), which reads the tables in one pass, with the view.
inline void check_replicas(const Database& database) {
  static const std::vector<std::string> columns{
      "train_loss",    "train_accuracy",     "validation_loss",  "validation_accuracy",
      "train_seconds", "validation_seconds", "train_perplexity", "validation_perplexity",
      "train_psnr",    "validation_psnr"};
  std::string sql = "SELECT e.run_key, e.strategy, e.replica, e.epoch";
  for (const std::string& name : columns) sql += ", " + name;
  const auto view = select(database, sql + R"sql(
    FROM task_epoch_replica e JOIN experiment_run m ON m.run_key = e.run_key AND m.experiment = e.experiment
    WHERE e.experiment = 'sweep' ORDER BY m.first_journal_id, m.position, e.replica, e.epoch)sql")
                        .rows;
  const auto read = epoch_replicas(database, "sweep");
  REQUIRE(read.size() == view.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].run_key == view[i][0].get<std::string>());
    CHECK(read[i].strategy == view[i][1].get<std::string>());
    CHECK(read[i].replica == view[i][2].get<std::int64_t>());
    CHECK(read[i].epoch == view[i][3].get<std::int64_t>());
    for (std::size_t column = 0; column < columns.size(); ++column) {
      CAPTURE(columns[column]);
      const double value = read[i][MetricColumn::named(columns[column])];
      const nlohmann::json& expected = view[i][column + 4];
      CHECK(std::isnan(value) == expected.is_null());
      if (!expected.is_null()) CHECK(value == doctest::Approx(expected.get<double>()).epsilon(1e-12));
    }
  }
}

// Compares the stored rows with values computed from the rows of the records.
inline void check_kept(const Database& database) {
  const auto kept = [&](const std::string& sql) { return rows_of(database, sql); };
  const auto computed = [&](const std::string& sql) { return rows_of(database, from_epochs(sql)); };
  CHECK(
      kept(
          "SELECT run_key, epoch, attempt, train_loss, train_accuracy, validation_loss, validation_accuracy, "
          "train_seconds, validation_seconds, energy_joules, peak_device_bytes FROM run_epoch") ==
      computed("SELECT * FROM computed_average"));
  CHECK(kept("SELECT * FROM timed_epoch") == computed("SELECT * FROM computed_timed"));
  CHECK(kept("SELECT * FROM epoch_train_seconds") == computed("SELECT * FROM computed_seconds"));
  CHECK(kept("SELECT f.run_key, train_loss, train_accuracy, validation_loss, validation_accuracy, test_loss, "
             "f.test_accuracy, epoch_train_seconds, total_validation_seconds, test_bleu "
             "FROM run_final f JOIN run_state USING (run_key)") == computed("SELECT * FROM computed_final"));
}

struct CheckedYard : Yard {
  CheckedYard() = default;
  CheckedYard(const CheckedYard&) = delete;
  CheckedYard& operator=(const CheckedYard&) = delete;
  ~CheckedYard() {
    check_kept(database);
    check_replicas(database);
  }
};

}  // namespace trainyard::db::testing
