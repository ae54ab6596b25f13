// A yard for tests of the views: whatever a test has put into it, at its end one pass over the tables must
// read what the views say.
#pragma once

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "db/queries.h"
#include "yard.h"

namespace trainyard::db::testing {

inline bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == doctest::Approx(b).epsilon(1e-12);
}

inline void check_same(const std::vector<EpochRow>& read, const std::vector<EpochRow>& view) {
  REQUIRE(read.size() == view.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].run_key == view[i].run_key);
    CHECK(read[i].strategy == view[i].strategy);
    CHECK(read[i].replica == view[i].replica);
    CHECK(read[i].epoch == view[i].epoch);
    for (double EpochRow::*value :
         {&EpochRow::train_loss, &EpochRow::train_accuracy, &EpochRow::validation_loss,
          &EpochRow::validation_accuracy, &EpochRow::train_seconds, &EpochRow::validation_seconds,
          &EpochRow::train_perplexity, &EpochRow::validation_perplexity, &EpochRow::train_psnr,
          &EpochRow::validation_psnr})
      CHECK(same(read[i].*value, view[i].*value));
  }
}

// Final metrics are read in one pass, too: against the view.
inline void check_finals(const Database& database) {
  using Final = FinalMetrics;
  static const std::vector<std::pair<std::string, double Final::*>> columns{
      {"train_loss", &Final::train_loss},
      {"train_accuracy", &Final::train_accuracy},
      {"validation_loss", &Final::validation_loss},
      {"validation_accuracy", &Final::validation_accuracy},
      {"test_loss", &Final::test_loss},
      {"test_accuracy", &Final::test_accuracy},
      {"epoch_train_seconds", &Final::epoch_train_seconds},
      {"total_validation_seconds", &Final::total_validation_seconds},
      {"train_perplexity", &Final::train_perplexity},
      {"validation_perplexity", &Final::validation_perplexity},
      {"test_perplexity", &Final::test_perplexity},
      {"train_psnr", &Final::train_psnr},
      {"validation_psnr", &Final::validation_psnr},
      {"test_psnr", &Final::test_psnr},
      {"test_bleu", &Final::test_bleu}};
  std::string sql = "SELECT run_key";
  for (const auto& [name, member] : columns) sql += ", " + name;
  const auto view = select(database, sql + " FROM task_final_metrics WHERE experiment = 'sweep'").rows;
  const auto read = final_metrics(database, "sweep");
  REQUIRE(read.size() == view.size());
  for (const auto& row : view) {
    const auto of_run = std::find_if(
        read.begin(), read.end(), [&](const Final& one) { return one.run_key == row[0].get<std::string>(); });
    REQUIRE(of_run != read.end());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      CAPTURE(columns[i].first);
      const double expected = row[i + 1].is_null() ? not_defined : row[i + 1].get<double>();
      CHECK(same((*of_run).*columns[i].second, expected));
    }
  }
}

struct CheckedYard : Yard {
  CheckedYard() = default;
  CheckedYard(const CheckedYard&) = delete;
  CheckedYard& operator=(const CheckedYard&) = delete;
  ~CheckedYard() {
    check_finals(database);
    const Epochs read = epochs_of_experiment(database, "sweep");
    check_same(read.averages, epoch_averages(database, "sweep"));
    check_same(read.replicas, epoch_replicas(database, "sweep"));
    const auto times = time_parts(database, "sweep");
    REQUIRE(read.times.size() == times.size());
    for (std::size_t i = 0; i < times.size(); ++i) {
      CHECK(read.times[i].run_key == times[i].run_key);
      CHECK(read.times[i].strategy == times[i].strategy);
      REQUIRE(read.times[i].seconds.size() == times[i].seconds.size());
      for (const auto& [part, seconds] : times[i].seconds)
        CHECK(same(read.times[i].seconds.at(part), seconds));
    }
  }
};

}  // namespace trainyard::db::testing
