// A yard for tests of the views: whatever a test has put into it, at its end one pass over the tables must
// read what the views say.
#pragma once

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

struct CheckedYard : Yard {
  CheckedYard() = default;
  CheckedYard(const CheckedYard&) = delete;
  CheckedYard& operator=(const CheckedYard&) = delete;
  ~CheckedYard() {
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
