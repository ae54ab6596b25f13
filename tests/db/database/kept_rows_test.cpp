// Stored rows of runs and epochs follow the records. `CheckedYard` compares the two at its end.
#include <cmath>

#include <doctest/doctest.h>

#include "tests/db/support/checked_yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;
using nlohmann::json;

namespace {

std::int64_t rows_in(const Database& database, const std::string& table) {
  return select(database, "SELECT COUNT(*) FROM " + table).rows.at(0).at(0).get<std::int64_t>();
}

}  // namespace

TEST_CASE("a removed run leaves no stored rows, and its next attempt starts without any") {
  CheckedYard yard;
  const auto run = make_run("mlp", 2, 0), other = make_run("mlp", 1, 1);
  yard.plan({run, other});
  finish(yard.ingest, run, make_launch(run), {3, 2, 1});
  finish(yard.ingest, other, make_launch(other), {4, 4, 4});
  CHECK(rows_in(yard.database, "attempt_epoch") == 6);
  CHECK(rows_in(yard.database, "run_final") == 2);
  yard.ingest.journal_entry(rm_entry({key(run)}, "2026-11-20T12:00:00.000Z"));
  CHECK(rows_in(yard.database, "attempt_epoch") == 3);
  CHECK(rows_in(yard.database, "run_final") == 1);
  yard.plan({run}, "2026-11-20T13:00:00.000Z");
  finish(yard.ingest, run, make_launch(run, 2, "2026-11-20T14:00:00.000Z"), {9, 8, 7});
  CHECK(rows_in(yard.database, "attempt_epoch") == 6);
  CHECK(final_metrics(yard.database, "sweep").at(0)["epoch_train_seconds"] == 7.5);  // its place stays
}

TEST_CASE("if a rank records an epoch twice, the last record counts") {
  CheckedYard yard;
  const auto run = yard.launched("mlp", 2, 0, 1);
  RecordLog zero(run, 1, 0), one(run, 1, 1);
  yard.ingest.record(zero.next("epoch", epoch_body(1, 9, 1, {metric("train", "loss", 90, 10)})));
  yard.ingest.record(one.next("epoch", epoch_body(1, 2, 1, {metric("train", "loss", 10, 10)})));
  yard.ingest.record(zero.next("epoch", epoch_body(1, 1, 1, {metric("train", "loss", 30, 10)})));
  const EpochRow epoch = epoch_averages(yard.database, "sweep").at(0);
  CHECK(epoch["train_loss"] == 2);
  CHECK(epoch["train_seconds"] == 2);
}

TEST_CASE("a run that diverged and was resumed stores what its records say, including NaN") {
  CheckedYard yard;
  const auto run = make_run("seq2seq", 2, 0, 4);
  yard.plan({run});
  for (const int number : {1, 2}) {
    auto launch = make_launch(run, number);
    if (number == 2) launch.resumes = experiments::Resumes{1, 2};
    yard.ingest.run_file(experiments::to_json(launch));
    for (const int rank : {0, 1}) {
      RecordLog log(run, number, rank);
      for (int epoch = number == 1 ? 1 : 3; epoch <= number + 2; ++epoch) {
        const json loss = epoch == 4 && rank == 1 ? json(nullptr) : json(20.0 * epoch);
        yard.ingest.record(log.next(
            "epoch", epoch_body(epoch, epoch + rank, 0.5,
                                {metric("train", "loss", loss, 10), metric("validation", "loss", 10, 10)})));
      }
      if (number == 1) continue;
      yard.ingest.record(log.next("test", {{"metrics", {metric("test", "loss", 5, 10)}}}));
      yard.ingest.record(log.next("end", end_body("finished", 6)));
    }
  }
  const FinalMetrics final = yard.final();
  CHECK(std::isnan(final["train_loss"]));
  CHECK(final["validation_loss"] == 1);
  CHECK(final["validation_perplexity"] == doctest::Approx(2.718281828459045));
  CHECK(final["test_loss"] == 0.5);
  CHECK(final.epochs == 4);
  CHECK(final["epoch_train_seconds"] == (3 + 5) / 2.0);  // epochs 1 and 3 began an attempt
  CHECK(final["total_validation_seconds"] == 4 * 0.5);
}

TEST_CASE("an attempt that fails after a finished one does not change the stored rows") {
  CheckedYard yard;
  const auto run = make_run("mlp", 1, 0);
  yard.plan({run});
  finish(yard.ingest, run, make_launch(run), {1, 2, 3});
  const auto before = rows_of(yard.database, "SELECT * FROM run_final");
  yard.ingest.run_file(experiments::to_json(make_launch(run, 2)));
  RecordLog zero(run, 2, 0), orchestrator(run, 2, std::nullopt);
  yard.ingest.record(zero.next("epoch", epoch_body(1, 99, 1, {metric("train", "loss", 7, 1)})));
  yard.ingest.record(orchestrator.next("cause", {{"outcome", "failed"}}));
  CHECK(rows_of(yard.database, "SELECT * FROM run_final") == before);
}
