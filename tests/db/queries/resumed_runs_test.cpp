// Interrupted and resumed runs: which epochs allow a resume, and what the views contain.
#include <doctest/doctest.h>

#include "db/queries/evidence.h"
#include "db/queries/queries.h"
#include "tests/db/support/checked_yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;

namespace {

// An attempt on `lasts.size()` ranks. Rank r has recorded epochs `first` … lasts[r].
void attempt(Yard& yard, const experiments::Run& run, int number, int first, const std::vector<int>& lasts,
             std::optional<experiments::Resumes> resumes = {}) {
  auto launch = make_launch(run, number);
  launch.resumes = resumes;
  yard.ingest.run_file(experiments::to_json(launch));
  for (std::size_t rank = 0; rank < lasts.size(); ++rank) {
    RecordLog log(run, number, static_cast<int>(rank));
    for (int epoch = first; epoch <= lasts[rank]; ++epoch) {
      yard.ingest.record(log.next("epoch", epoch_body(epoch, 1, 1)));
      yard.ingest.record(log.next("checkpoint", {{"epoch", epoch}}));
    }
  }
}

std::vector<std::int64_t> whole_epochs(const Yard& yard, const experiments::Run& run) {
  std::vector<std::int64_t> whole;
  for (const auto& each : resumable_attempts(yard.database, key(run))) whole.push_back(each.whole_epochs);
  return whole;
}

// An attempt of one rank at `run` that resumes after epoch `after` of the previous attempt and records its
// epochs. The first one takes twice the time of the others.
RecordLog resuming_attempt(Yard& yard, const experiments::Run& run, int number, int after, int last,
                           const std::string& host = "yard") {
  auto launch = make_launch(run, number);
  launch.circumstances.host = host;
  if (after > 0) launch.resumes = experiments::Resumes{number - 1, after};
  yard.ingest.run_file(experiments::to_json(launch));
  RecordLog zero(run, number, 0);
  for (int epoch = after + 1; epoch <= last; ++epoch) {
    auto record = zero.next(
        "epoch", epoch_body(epoch, epoch == after + 1 ? 8 : 4, 1, {metric("train", "loss", 1, 50)}));
    record.elapsed_seconds = 10 * (epoch - after);
    yard.ingest.record(record);
  }
  return zero;
}

}  // namespace

TEST_CASE("an epoch is complete if all ranks have recorded it and every epoch before it, along the chain") {
  Yard yard;
  const auto run = make_run("mlp", 2, 0, 9);
  yard.plan({run});
  CHECK(resumable_attempts(yard.database, key(run)).empty());
  attempt(yard, run, 1, 1, {4, 3});
  CHECK(whole_epochs(yard, run) == std::vector<std::int64_t>{3});
  attempt(yard, run, 2, 3, {5, 5}, experiments::Resumes{1, 2});
  attempt(yard, run, 3, 7, {8, 8}, experiments::Resumes{2, 6});  // epoch 6 is missing
  attempt(yard, run, 4, 1, {0, 2});
  CHECK(whole_epochs(yard, run) == std::vector<std::int64_t>{3, 5, 5, 0});
  const auto first = resumable_attempts(yard.database, key(run)).front();
  CHECK(first.attempt == 1);
  CHECK(first.checkpoints == std::vector<std::int64_t>{1, 2, 3, 4});  // the checkpoints of rank 0
  CHECK(first.circumstances == make_launch(run).circumstances);
}

TEST_CASE("a checkpoint record without a valid epoch is ignored") {
  Yard yard;
  const auto run = yard.launched("mlp", 1, 0, 9);
  RecordLog log(run, 1, 0);
  for (const nlohmann::json& epoch : {nlohmann::json("2"), nlohmann::json(nullptr), nlohmann::json(2.5)})
    yard.ingest.record(log.next("checkpoint", {{"epoch", epoch}}));
  yard.ingest.record(log.next("checkpoint"));
  CHECK(resumable_attempts(yard.database, key(run)).at(0).checkpoints.empty());
}

TEST_CASE("attempts up to the last finished one cannot be resumed") {
  Yard yard;
  const auto run = make_run("mlp", 1, 0, 2);
  yard.plan({run});
  attempt(yard, run, 1, 1, {1});
  finish(yard.ingest, run, make_launch(run, 2), {1, 1});
  CHECK(whole_epochs(yard, run).empty());
  CHECK(runs_with_nothing_to_resume(yard.database) == std::set<std::string>{key(run)});
  attempt(yard, run, 3, 1, {1});
  CHECK(whole_epochs(yard, run) == std::vector<std::int64_t>{1});
  CHECK(runs_with_nothing_to_resume(yard.database).empty());
}

TEST_CASE("the time of a resumed run is the sum over its attempts, each up to the point of its resume") {
  CheckedYard yard;
  const auto run = make_run("mlp", 1, 0, 6);
  yard.plan({run});
  resuming_attempt(yard, run, 1, 0, 4);  // resumed after epoch 3, at 30 s
  RecordLog last = resuming_attempt(yard, run, 2, 3, 6);
  CHECK(run_summaries(yard.database).at(0).total_seconds == 0);
  yard.ingest.record(last.next("end", end_body("finished", 35)));
  CHECK(run_summaries(yard.database).at(0).total_seconds == 30 + 35);
  CHECK(median_run_seconds(yard.database).begin()->second == 30 + 35);
}

TEST_CASE("the first epoch of each attempt is warm-up and not timed, unless there are no others") {
  struct Case {
    std::vector<int> lasts;  // of each attempt
    double expected;
  };
  for (const auto& [lasts, expected] :
       {Case{{3, 6}, 4}, Case{{1, 2, 3}, 8}, Case{{1, 2}, 8}, Case{{2, 3}, 4}}) {
    CheckedYard yard;
    const auto run = make_run("mlp", 1, 0, lasts.back());
    yard.plan({run});
    int before = 0, number = 0;
    for (const int last : lasts) {
      RecordLog log = resuming_attempt(yard, run, ++number, before, last);
      before = last;
      if (number == static_cast<int>(lasts.size()))
        yard.ingest.record(log.next("end", end_body("finished", 35)));
    }
    CAPTURE(lasts.size());
    CHECK(yard.final()["epoch_train_seconds"] == expected);
  }
}

TEST_CASE("times of a run that resumed on another host do not count") {
  for (const char* host : {"yard", "elsewhere"}) {
    CheckedYard yard;
    const auto run = make_run("mlp", 1, 0, 4);
    yard.plan({run});
    resuming_attempt(yard, run, 1, 0, 2, "yard");
    RecordLog last = resuming_attempt(yard, run, 2, 2, 4, host);
    yard.ingest.record(last.next("end", end_body("finished", 5)));
    CHECK(yard.final().times_count == (host == std::string("yard")));
  }
}

TEST_CASE("a run that only tested after its resume has the sample count of its last epoch") {
  CheckedYard yard;
  const auto run = make_run("mlp", 1, 0, 2);
  yard.plan({run});
  resuming_attempt(yard, run, 1, 0, 2);
  RecordLog last = resuming_attempt(yard, run, 2, 2, 2);
  yard.ingest.record(last.next("end", end_body("finished", 5)));
  CHECK(run_evidence(yard.database, "sweep").at(0).samples_an_epoch == 50);
}

TEST_CASE("numbers of samples are the recorded weights, of predictions if there is no loss") {
  CheckedYard yard;
  const auto run = make_run("mlp", 2, 0, 2);
  yard.plan({run});
  finish(yard.ingest, run, make_launch(run), {1, 2});
  const auto evidence = run_evidence(yard.database, "sweep").at(0);
  CHECK(evidence.samples_an_epoch == 40 + 80);
  CHECK(evidence.validation_samples == 8 + 16);
  CHECK(evidence.test_samples == 10 + 20);
  CHECK(evidence.first_loss == 300.0 / 120);
  const auto other = yard.launched("mlp", 1, 1, 1);
  RecordLog log(other, 1, 0);
  yard.ingest.record(log.next("epoch", epoch_body(1, 1, 0, {metric("validation", "correct", 5, 7)})));
  const auto counted = run_evidence(yard.database, "sweep").at(1);
  CHECK(counted.validation_samples == 7);
  CHECK(std::isnan(counted.test_samples));
  CHECK(std::isnan(counted.first_loss));
}

TEST_CASE("evidence of the data order has each epoch once, from the first rank that states it") {
  CheckedYard yard;
  const auto run = make_run("mlp", 2, 0, 2);
  yard.plan({run});
  const auto train = [&](int attempt, std::int64_t after, const std::string& hash) {
    auto launch = make_launch(run, attempt);
    if (after > 0) launch.resumes = experiments::Resumes{attempt - 1, after};
    yard.ingest.run_file(experiments::to_json(launch));
    for (int rank = 0; rank < 2; ++rank) {
      RecordLog log(run, attempt, rank);
      for (std::int64_t epoch = after + 1; epoch <= 2; ++epoch) {
        auto body = epoch_body(epoch, 1, 0.5);
        if (rank == 1) body["batches"] = hash + std::to_string(epoch);
        yard.ingest.record(log.next("epoch", body));
      }
      if (attempt == 2) yard.ingest.record(log.next("end", end_body("finished", 5)));
    }
  };
  train(1, 0, "first ");
  train(2, 1, "second ");
  CHECK(run_evidence(yard.database, "sweep").at(0).batches ==
        std::map<std::int64_t, std::string>{{1, "first 1"}, {2, "second 2"}});
  CHECK(rows_of(yard.database, "SELECT DISTINCT extra FROM epoch") == std::vector<std::string>{"[null]"});
}
