// A yard that checks its database when it is destroyed: the stored rows must equal values computed from the
// records, and `epoch_averages`, `epoch_replicas` and `time_parts` must equal the views.
#pragma once

#include <cmath>

#include <doctest/doctest.h>

#include "db/queries/queries.h"
#include "tests/db/support/from_epochs.h"
#include "tests/db/support/yard.h"

namespace trainyard::db::testing {

// Compares rows of epoch_averages() or epoch_replicas() with those of a view.
inline void check_epochs(const Database& database, const std::vector<EpochRow>& read,
                         const std::string& view_name, const std::string& replica,
                         const std::vector<std::string>& more_columns) {
  std::vector<std::string> columns{"train_loss",          "train_accuracy",        "validation_loss",
                                   "validation_accuracy", "train_seconds",         "validation_seconds",
                                   "train_perplexity",    "validation_perplexity", "train_psnr",
                                   "validation_psnr"};
  columns.insert(columns.end(), more_columns.begin(), more_columns.end());
  std::string sql = "SELECT e.run_key, e.strategy, " + replica + ", e.epoch";
  for (const std::string& name : columns) sql += ", e." + name;
  const auto view = select(database, sql + " FROM " + view_name + R"sql( e
    JOIN experiment_run m ON m.run_key = e.run_key AND m.experiment = e.experiment
    WHERE e.experiment = 'sweep' ORDER BY m.first_journal_id, m.position, 3, e.epoch)sql")
                        .rows;
  CAPTURE(view_name);
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

// Compares time_parts() with the view.
inline void check_time_parts(const Database& database) {
  const auto view = select(database, R"sql(
    SELECT t.run_key, t.data_seconds, t.forward_seconds FROM time_parts t
    JOIN experiment_run m ON m.run_key = t.run_key AND m.experiment = t.experiment
    WHERE t.experiment = 'sweep' ORDER BY m.first_journal_id, m.position)sql")
                        .rows;
  const auto read = time_parts(database, "sweep");
  REQUIRE(read.size() == view.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].run_key == view[i][0].get<std::string>());
    for (const auto& [name, column] : {std::pair("data", 1), std::pair("forward", 2)}) {
      const auto found = read[i].seconds.find(name);
      REQUIRE((found == read[i].seconds.end()) == view[i][column].is_null());
      if (found != read[i].seconds.end())
        CHECK(found->second == doctest::Approx(view[i][column].get<double>()).epsilon(1e-12));
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
    check_epochs(database, epoch_averages(database, "sweep"), "task_epoch_average", "-1",
                 {"energy_joules", "peak_device_bytes"});
    check_epochs(database, epoch_replicas(database, "sweep"), "task_epoch_replica", "e.replica", {});
    check_time_parts(database);
  }
};

}  // namespace trainyard::db::testing
