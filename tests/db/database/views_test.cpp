// Values in the views, compared with sums worked out by hand.
#include <cmath>

#include <doctest/doctest.h>

#include "db/queries/queries.h"
#include "tests/db/support/checked_yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;
using nlohmann::json;

namespace {

std::vector<std::string> columns(const Database& database, const std::string& view) {
  return select(database, "SELECT * FROM " + view).columns;
}

}  // namespace

TEST_CASE("the public views have their promised columns in their promised order") {
  const CheckedYard yard;
  using Names = std::vector<std::string>;
  const auto with_parts = [](Names names, const Names& more = {}) {
    for (const char* phase : {"train", "validation"})
      for (const char* part : {"part1", "part2", "part3"}) names.push_back(std::string(phase) + "_" + part);
    names.insert(names.end(), more.begin(), more.end());
    return names;
  };
  CHECK(columns(yard.database, "epoch_average") ==
        with_parts(
            {"run_key", "experiment", "model", "strategy", "seed", "epoch", "train_loss", "train_accuracy",
             "validation_loss", "validation_accuracy", "train_seconds", "validation_seconds", "energy_joules",
             "peak_device_bytes", "processor_seconds", "times_count"},
            {"other_share"}));
  CHECK(columns(yard.database, "epoch_rank") ==
        with_parts({"run_key", "experiment", "model", "strategy", "seed", "rank", "epoch", "train_loss",
                    "train_accuracy", "validation_loss", "validation_accuracy", "train_seconds",
                    "validation_seconds", "energy_joules", "energy_device", "peak_device_bytes",
                    "processor_seconds"}));
  CHECK(columns(yard.database, "final_metrics") == Names{"run_key",
                                                         "experiment",
                                                         "model",
                                                         "strategy",
                                                         "seed",
                                                         "train_loss",
                                                         "train_accuracy",
                                                         "validation_loss",
                                                         "validation_accuracy",
                                                         "test_loss",
                                                         "test_accuracy",
                                                         "epoch_train_seconds",
                                                         "total_train_seconds",
                                                         "total_validation_seconds",
                                                         "epoch_energy_joules",
                                                         "peak_device_bytes",
                                                         "epoch_processor_seconds",
                                                         "times_count",
                                                         "times_problem",
                                                         "variant"});
  CHECK(columns(yard.database, "run_axis") == Names{"run_key", "name", "value"});
  Names summary = columns(yard.database, "run_summary");
  summary.resize(8);
  CHECK(summary == Names{"run_key", "experiment", "model", "strategy", "seed", "status", "epochs",
                         "total_train_seconds"});
}

TEST_CASE("an average is the sum of sums divided by the sum of weights, not the mean of means") {
  CheckedYard yard;
  const auto run = make_run("mlp", 2, 4);
  yard.plan({run});
  finish(yard.ingest, run, make_launch(run), {5, 2, 3});
  const auto epochs = epoch_averages(yard.database, "sweep");
  REQUIRE(epochs.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const double epoch = static_cast<double>(i) + 1;
    CHECK(epochs[i].epoch == i + 1);
    CHECK(epochs[i].replica == -1);
    CHECK(epochs[i].seed == 4);
    CHECK(epochs[i]["train_loss"] == doctest::Approx((100 + 200) / epoch / (40 + 80)));
    CHECK(epochs[i]["train_accuracy"] == doctest::Approx(90.0 / 120));
    CHECK(epochs[i]["validation_loss"] == doctest::Approx(48.0 / 24));
    CHECK(epochs[i]["validation_accuracy"] == doctest::Approx(12.0 / 24));
  }
  const FinalMetrics final = yard.final();
  CHECK(final["train_loss"] == doctest::Approx(300.0 / 3 / 120));
  CHECK(final["test_loss"] == doctest::Approx(9.0 / 30));
  CHECK(final["test_accuracy"] == doctest::Approx(27.0 / 30));
  CHECK(final.epochs == 3);
  CHECK(run_summaries(yard.database).at(0).test_accuracy == doctest::Approx(27.0 / 30));
}

TEST_CASE("ranks with unequal parts are weighted by their samples") {
  CheckedYard yard;
  const auto run = yard.launched("mlp", 2, 0, 1);
  RecordLog zero(run, 1, 0), one(run, 1, 1);
  yard.ingest.record(zero.next(
      "epoch", epoch_body(1, 1, 1, {metric("train", "loss", 30, 10), metric("train", "correct", 10, 10)})));
  yard.ingest.record(one.next(
      "epoch", epoch_body(1, 1, 1, {metric("train", "loss", 10, 30), metric("train", "correct", 0, 30)})));
  const auto epochs = epoch_averages(yard.database, "sweep");
  CHECK(epochs.at(0)["train_loss"] == doctest::Approx(1.0));       // the mean of means is 5/3
  CHECK(epochs.at(0)["train_accuracy"] == doctest::Approx(0.25));  // the mean of means is 1/2
  const auto ranks = epoch_replicas(yard.database, "sweep");
  REQUIRE(ranks.size() == 2);
  CHECK(ranks[0].replica == 0);
  CHECK(ranks[0]["train_loss"] == doctest::Approx(3.0));
  CHECK(ranks[1]["train_loss"] == doctest::Approx(1.0 / 3));
}

TEST_CASE("a metric that was not measured, or has no samples, is not defined") {
  CheckedYard yard;
  const auto run = yard.launched("mlp", 2, 0, 1);
  RecordLog zero(run, 1, 0), one(run, 1, 1);
  yard.ingest.record(zero.next(
      "epoch", epoch_body(1, 1, 1, {metric("train", "loss", 5, 10), metric("validation", "correct", 0, 0)})));
  yard.ingest.record(one.next("epoch", epoch_body(1, 2, 1)));
  const EpochRow average = epoch_averages(yard.database, "sweep").at(0);
  CHECK(average["train_loss"] == doctest::Approx(0.5));  // only the last stage writes metrics
  CHECK(std::isnan(average["train_accuracy"]));
  CHECK(std::isnan(average["validation_loss"]));
  CHECK(std::isnan(average["validation_accuracy"]));
  CHECK(std::isnan(epoch_replicas(yard.database, "sweep").at(1)["train_loss"]));
  CHECK(std::isnan(run_summaries(yard.database).at(0).test_accuracy));
}

TEST_CASE("if a rank's loss is NaN, the average is NaN") {
  CheckedYard yard;
  const auto run = yard.launched("mlp", 2, 0, 1);
  RecordLog zero(run, 1, 0), one(run, 1, 1);
  yard.ingest.record(zero.next("epoch", epoch_body(1, 1, 1, {metric("train", "loss", 5, 10)})));
  yard.ingest.record(one.next("epoch", epoch_body(1, 1, 1, {metric("train", "loss", nullptr, 10)})));
  CHECK(std::isnan(epoch_averages(yard.database, "sweep").at(0)["train_loss"]));
}

TEST_CASE("the time of an epoch is the time of its slowest rank") {
  CheckedYard yard;
  const auto run = yard.launched("mlp", 2, 0, 2);
  RecordLog zero(run, 1, 0), one(run, 1, 1);
  yard.ingest.record(zero.next("epoch", epoch_body(1, 4, 0.5)));
  yard.ingest.record(zero.next("epoch", epoch_body(2, 1, 0.25)));
  yard.ingest.record(one.next("epoch", epoch_body(1, 3, 1.0)));
  yard.ingest.record(one.next("epoch", epoch_body(2, 2, 0.125)));
  yard.ingest.record(zero.next("end", end_body("finished", 6)));
  yard.ingest.record(one.next("end", end_body("finished", 7)));
  const auto epochs = epoch_averages(yard.database, "sweep");
  CHECK(epochs.at(0)["train_seconds"] == 4);
  CHECK(epochs.at(1)["train_seconds"] == 2);
  CHECK(epochs.at(0)["validation_seconds"] == 1.0);
  CHECK(run_summaries(yard.database).at(0).total_train_seconds == 4 + 2);
  CHECK(run_summaries(yard.database).at(0).total_seconds == 7);
  CHECK(yard.final()["total_validation_seconds"] == doctest::Approx(1.0 + 0.25));
}

TEST_CASE("seconds per epoch are the median without the first epoch, or over all if there are fewer than 3") {
  const std::vector<std::pair<std::vector<double>, double>> cases{
      {{9}, 9},                 // one epoch: itself
      {{9, 1}, 5},              // two: their mean, none dropped
      {{9, 1, 4}, 2.5},         // three: the first is dropped
      {{9, 5, 1, 3}, 3},        // an odd number is left
      {{9, 5, 1, 3, 100}, 4},   // an even number is left: mean of the two in the middle
      {{1, 7, 7, 7, 8, 6}, 7},  // ties
  };
  for (const auto& [given, expected] : cases) {
    const auto& seconds = given;  // a structured binding cannot be captured
    Yard yard;
    const auto run = make_run("mlp", 1, 0, static_cast<std::int64_t>(seconds.size()));
    yard.plan({run});
    finish(yard.ingest, run, make_launch(run), seconds);
    CAPTURE(seconds.size());
    CHECK(yard.final()["epoch_train_seconds"] == doctest::Approx(expected));
  }
}

TEST_CASE("each run has its own median") {
  CheckedYard yard;
  const auto fast = make_run("mlp", 1, 0, 4), slow = make_run("mlp", 1, 1, 4);
  yard.plan({fast, slow});
  finish(yard.ingest, fast, make_launch(fast), {9, 1, 2, 3});
  finish(yard.ingest, slow, make_launch(slow), {9, 10, 30, 20});
  const auto finals = final_metrics(yard.database, "sweep");
  REQUIRE(finals.size() == 2);
  CHECK(finals[0]["epoch_train_seconds"] == 2);
  CHECK(finals[1]["epoch_train_seconds"] == 20);
}

TEST_CASE("an epoch of a running run has an average after all ranks have recorded it") {
  CheckedYard yard;
  const auto run = yard.launched("mlp", 2, 0);
  RecordLog zero(run, 1, 0), one(run, 1, 1);
  yard.ingest.record(zero.next("epoch", epoch_body(1, 1, 1, {metric("train", "loss", 5, 10)})));
  CHECK(epoch_averages(yard.database, "sweep").empty());
  CHECK(epoch_replicas(yard.database, "sweep").size() == 1);
  CHECK(run_summaries(yard.database).at(0).epochs_done == 0);
  yard.ingest.record(one.next("epoch", epoch_body(1, 1, 1, {metric("train", "loss", 5, 10)})));
  CHECK(epoch_averages(yard.database, "sweep").size() == 1);
  CHECK(run_summaries(yard.database).at(0).epochs_done == 1);
}

TEST_CASE("the finished attempt of a run counts, or else the latest") {
  CheckedYard yard;
  const auto run = make_run("mlp", 1, 0);
  yard.plan({run});
  const auto fail = [&](int attempt) {
    yard.ingest.run_file(experiments::to_json(make_launch(run, attempt)));
    RecordLog orchestrator(run, attempt, std::nullopt), zero(run, attempt, 0);
    yard.ingest.record(zero.next("epoch", epoch_body(1, 10.0 * attempt, 1)));
    yard.ingest.record(orchestrator.next("cause", {{"outcome", "failed"}, {"error", "it broke"}}));
  };
  fail(1);
  fail(2);
  CHECK(epoch_averages(yard.database, "sweep").at(0)["train_seconds"] == 20);
  CHECK(final_metrics(yard.database, "sweep").empty());
  finish(yard.ingest, run, make_launch(run, 3), {1, 2, 3});
  fail(4);
  const RunSummary summary = run_summaries(yard.database).at(0);
  CHECK(summary.status == "finished");
  CHECK(summary.attempts == 4);
  CHECK(summary.failure.empty());
  CHECK(summary.total_train_seconds == 1 + 2 + 3);
  CHECK(epoch_averages(yard.database, "sweep").size() == 3);
}

TEST_CASE("a resumed run has each epoch once, along its chain of attempts") {
  CheckedYard yard;
  const auto run = make_run("mlp", 1, 0, 6);
  yard.plan({run});
  const auto attempt = [&](int number, int first, int last, std::optional<int> resumes, int after) {
    json launch = experiments::to_json(make_launch(run, number));
    if (resumes) launch.update({{"resumes_attempt", *resumes}, {"resumes_after_epoch", after}});
    yard.ingest.run_file(launch);
    RecordLog zero(run, number, 0);
    for (int epoch = first; epoch <= last; ++epoch)
      yard.ingest.record(zero.next("epoch", epoch_body(epoch, 100.0 * number + epoch, 1)));
    return zero;
  };
  attempt(1, 1, 3, std::nullopt, 0);  // its last checkpoint is from epoch 2
  attempt(2, 3, 5, 1, 2);             // its last checkpoint is from epoch 4
  attempt(3, 1, 2, std::nullopt, 0);  // starts from the beginning, and no attempt resumes it
  RecordLog last = attempt(4, 5, 6, 2, 4);
  yard.ingest.record(last.next("end", end_body("finished", 9)));
  const auto epochs = epoch_averages(yard.database, "sweep");
  std::vector<double> seconds;
  seconds.reserve(epochs.size());
  for (const EpochRow& epoch : epochs) seconds.push_back(epoch["train_seconds"]);
  CHECK(seconds == std::vector<double>{101, 102, 203, 204, 405, 406});
  CHECK(epoch_replicas(yard.database, "sweep").size() == 6);
  CHECK(run_summaries(yard.database).at(0).total_train_seconds == 101 + 102 + 203 + 204 + 405 + 406);
}

TEST_CASE("a chain of attempts ends at one that claims to resume itself or a later one") {
  CheckedYard yard;
  const auto run = make_run("mlp", 1, 0);
  yard.plan({run});
  json launch = experiments::to_json(make_launch(run, 1));
  launch.update({{"resumes_attempt", 1}, {"resumes_after_epoch", 7}});
  yard.ingest.run_file(launch);
  RecordLog zero(run, 1, 0);
  yard.ingest.record(zero.next("epoch", epoch_body(1, 1, 1)));
  CHECK(epoch_averages(yard.database, "sweep").size() == 1);
}

TEST_CASE("times count if the host was exclusive, also if the ranks shared devices") {
  for (const bool exclusive : {true, false})
    for (const bool shared : {true, false}) {
      Yard yard;
      const auto run = make_run("mlp", 1, 0);
      yard.plan({run});
      auto launch = make_launch(run);
      launch.host_exclusive = exclusive;
      launch.devices_shared = shared;
      finish(yard.ingest, run, launch, {1, 2, 3});
      CHECK(yard.final().times_count == exclusive);
    }
}

namespace {

// The reason why the times of the only run do not count, or empty if they do. Checks that all views agree.
std::string times_problem(const Yard& yard) {
  const auto text = [](const nlohmann::json& value) {
    return value.is_null() ? std::string() : value.get<std::string>();
  };
  const FinalMetrics final = yard.final();
  const auto rows =
      select(yard.database,
             "SELECT s.times_problem, s.times_count, r.times_problem, r.times_count, "
             "t.times_count FROM attempt_summary s JOIN run_summary r USING (run_key) JOIN attempt t "
             "USING (run_key) WHERE r.run_key = '" +
                 final.run_key + "'")
          .rows;
  REQUIRE(rows.size() == 1);
  CHECK(text(rows[0][0]) == final.times_problem);
  CHECK(text(rows[0][2]) == final.times_problem);
  for (const std::size_t flag : {1U, 3U, 4U}) CHECK((rows[0][flag] == 1) == final.times_problem.empty());
  CHECK(final.times_count == final.times_problem.empty());
  return final.times_problem;
}

}  // namespace

TEST_CASE("the share of other processes is a column, and if it was too large the times do not count") {
  CheckedYard yard;
  const auto run = make_run("mlp", 1, 0);
  yard.plan({run});
  finish(yard.ingest, run, make_launch(run), {1, 2, 3});
  CHECK(std::isnan(yard.final().other_share));  // as in releases that did not record it
  RecordLog orchestrator(run, 1, std::nullopt);
  yard.ingest.record(
      orchestrator.next("processor_use", {{"cores", 1}, {"limit", 0.02}, {"other_share", 0.01}}));
  CHECK(times_problem(yard).empty());
  CHECK(yard.final().other_share == 0.01);
  CHECK(attempts_of_run(yard.database, key(run)).at(0).other_share == 0.01);
  // as releases recorded it that did not measure each epoch
  const std::string why = "other processes took 31 % of its cores (limit 2 %)";
  yard.ingest.record(orchestrator.next("processor_use", {{"cores", 1}, {"other_share", 0.31}, {"why", why}}));
  CHECK(times_problem(yard) == why);
  CHECK(attempts_of_run(yard.database, key(run)).at(0).times_problem == why);
  const auto finished = finished_runs(
      yard.database, {{key(run), experiments::circumstances_hash(make_launch(run).circumstances)}});
  CHECK(finished.times_problems == std::map<std::string, std::string>{{key(run), why}});
}

TEST_CASE("an epoch that other processes disturbed is not timed, and if all are the times do not count") {
  struct Case {
    json epochs;  // up to which epoch, seconds, and seconds that others took
    double median, share, total;
    int timed, disturbed;
    std::size_t counting;  // epochs, also the first
    std::string problem;
  };
  const json quiet = {1, 4.0, 0.05};
  const std::string all = "other processes took 25 % of its cores in the least disturbed epoch (limit 2 %)";
  for (const auto& [epochs, median, share, total, timed, disturbed, counting, problem] :
       {Case{{quiet, {5, 4.0, 0.05}}, 40, 0.0125, 250, 4, 0, 5, ""},
        Case{{quiet, {2, 4.0, 1.0}, {5, 20.0, 0.0}}, 40, 0, 220 * 5.0 / 4, 3, 1, 4, ""},  // without 30
        Case{{quiet, {4, 4.0, 1.0}, {5, 20.0, 0.0}}, 50, 0, 140 * 5.0 / 2, 1, 3, 2, ""},
        Case{{quiet, {5, 0.1, 0.02}}, 40, 0.2, 250, 4, 0, 5, ""},  // ticks of 10 ms cannot measure it
        // the first epoch is not timed
        Case{{{1, 4.0, 3.0}, {5, 20.0, 0.0}}, 40, 0, 160 * 5.0 / 4, 4, 0, 4, ""},
        Case{{quiet, {3, 4.0, 2.0}, {5, 4.0, 1.0}}, 40, 0.359375, 90 * 5.0, 4, 0, 0, all},
        Case{{quiet, {3, "x"}, 7, {5}}, 40, 0.3, 250, 4, 0, 5, ""}}) {
    CAPTURE(epochs.dump());
    Yard yard;
    const auto run = make_run("mlp", 1, 0, 5);
    yard.plan({run});
    finish(yard.ingest, run, make_launch(run), {90, 30, 40, 40, 50});
    RecordLog orchestrator(run, 1, std::nullopt);
    yard.ingest.record(orchestrator.next(
        "processor_use", {{"cores", 1}, {"limit", 0.02}, {"other_share", 0.3}, {"epochs", epochs}}));
    CHECK(yard.final().times_problem == problem);
    CHECK(attempts_of_run(yard.database, key(run)).at(0).times_problem == problem);
    CHECK(yard.final()["epoch_train_seconds"] == median);
    CHECK(yard.final().other_share == doctest::Approx(share));
    CHECK(yard.final()["total_validation_seconds"] == 0.625);
    CHECK(yard.final()["total_train_seconds"] == doctest::Approx(total));
    CHECK(select(yard.database, "SELECT 1 FROM timed_epoch").rows.size() == static_cast<std::size_t>(timed));
    CHECK(select(yard.database, "SELECT 1 FROM epoch_average WHERE times_count").rows.size() ==
          (problem.empty() ? counting : 0));
    CHECK(yard.final().timed_epochs == timed);
    CHECK(yard.final().disturbed_epochs == disturbed);
  }
}

TEST_CASE("if the first epoch is timed, one disturbed epoch is enough that the times do not count") {
  for (const int disturbed : {0, 1, 2}) {
    Yard yard;
    const auto run = make_run("mlp", 1, 0, 2);
    yard.plan({run});
    finish(yard.ingest, run, make_launch(run), {30, 40});
    RecordLog orchestrator(run, 1, std::nullopt);
    yard.ingest.record(orchestrator.next(
        "processor_use",
        {{"cores", 1},
         {"limit", 0.02},
         {"epochs", {{1, 4.0, disturbed == 1 ? 1.0 : 0.0}, {2, 4.0, disturbed == 2 ? 5.0 : 0.0}}}}));
    const std::string text = "other processes took " + std::string(disturbed == 1 ? "25" : "125") +
                             " % of its cores in an epoch (limit 2 %)";
    CHECK(yard.final().times_problem == (disturbed == 0 ? "" : text));
    CHECK(yard.final()["epoch_train_seconds"] == 35);
  }
}

TEST_CASE("disturbed epochs of an earlier attempt are left out, and the times of its last one count") {
  Yard yard;
  const auto run = make_run("mlp", 1, 0, 6);
  yard.plan({run});
  auto launch = make_launch(run);
  yard.ingest.run_file(experiments::to_json(launch));
  RecordLog first(run, 1, 0), orchestrator(run, 1, std::nullopt);
  record_epochs(yard.ingest, first, 4);
  yard.ingest.record(orchestrator.next(
      "processor_use", {{"cores", 1}, {"limit", 0.02}, {"epochs", {{1, 4.0, 0.0}, {6, 4.0, 2.0}}}}));
  launch.attempt = 2;
  launch.resumes = experiments::Resumes{1, 4};
  yard.ingest.run_file(experiments::to_json(launch));
  RecordLog second(run, 2, 0);
  for (int epoch = 5; epoch <= 6; ++epoch) yard.ingest.record(second.next("epoch", epoch_body(epoch, 3, 0)));
  yard.ingest.record(second.next("end", end_body("finished", 9)));
  CHECK(yard.final().times_problem.empty());
  CHECK(yard.final()["epoch_train_seconds"] == 3);
  CHECK(yard.final().timed_epochs == 1);
  CHECK(yard.final().disturbed_epochs == 3);
}

namespace {

// Records at these seconds of the rank's own clock.
struct TimedRank {
  CheckedYard& yard;
  RecordLog log;
  void record(double at, const std::string& type, const nlohmann::json& body) {
    experiments::Record record = log.next(type, body);
    record.elapsed_seconds = record.body["elapsed_seconds"] = at;
    yard.ingest.record(record);
  }
};

}  // namespace

TEST_CASE(
    "times count if epochs and test account for 80 % of the time from start to end, without the set-up") {
  struct Case {
    double setup, train, checkpoint, end;
    std::string kind, problem;
  };
  const std::string part =
      "rank 0 recorded only 2.75 s of the 3.5 s between its start and its end; at least 80 % is required";
  for (const auto& [setup, train, checkpoint, end, kind, problem] :
       {Case{0, 1, 0, 3.4, "foreign", ""}, Case{0, 1, 0, 3.5, "foreign", part},
        Case{0.5, 1, 0, 3.5, "foreign", ""},  // it needed half a second before the first epoch
        Case{9, 1, 0, 3.5, "foreign", ""},    // more than there was
        Case{0, 1, 1, 4.5, "foreign", part}, Case{0, 1, 1, 4.25, "foreign", ""},
        Case{0, 1, 0, 3.5, "single", ""},  // its parity check comes before the first epoch
        Case{0, 0.01, 0, 3, "single",
             "rank 0 recorded only 0.77 s of the 1.51 s between its start and its end; at least 80 % is "
             "required"}}) {
    const std::string times = "set-up " + std::to_string(setup) + ", end " + std::to_string(end);
    CAPTURE(times);
    CheckedYard yard;
    auto run = make_run("mlp", 1, 0, 2);
    run.strategy.kind = kind;
    if (kind == "foreign") run.strategy.command = {"train"};
    yard.plan({run});
    yard.ingest.run_file(experiments::to_json(make_launch(run)));
    TimedRank rank{yard, RecordLog(run, 1, 0)};
    rank.record(0, "start", {{"pid", 1}});
    rank.record(1.5, "epoch", epoch_body(1, train, 0));
    if (checkpoint > 0) rank.record(1.5 + checkpoint, "checkpoint", {{"epoch", 1}});
    rank.record(end - 0.75, "epoch", epoch_body(2, train, 0));
    rank.record(end - 0.001, "test", {{"seconds", 0.75}});
    rank.record(end, "end", {{"status", "finished"}, {"setup_seconds", setup}});
    CHECK(times_problem(yard) == problem);
  }
}

TEST_CASE("times do not count if training took 20 % longer than the rank computed and waited") {
  struct Case {
    double processor, waits, others;
    std::string device, problem;
  };
  const std::string said =
      "rank 0 trained for 6 s, but processor time, waits and other processes explain only 4.9 s: it was "
      "probably stopped";
  for (const auto& [processor, waits, others, device, problem] :
       {Case{1.5, 0.25, 0, "cpu:0", ""}, Case{1.5, 0.125, 0.025, "cpu:0", said},
        Case{1.5, 0.125, 0.2, "cpu:0", ""}, Case{1.5, 0.125, 0.025, "cuda:0", ""}}) {
    const std::string times = "waits " + std::to_string(waits) + ", others " + std::to_string(others);
    CAPTURE(times);
    CheckedYard yard;
    const auto run = make_run("mlp", 1, 0, 3);
    yard.plan({run});
    yard.ingest.run_file(experiments::to_json(make_launch(run)));
    RecordLog orchestrator(run, 1, std::nullopt);
    yard.ingest.record(
        orchestrator.next("processor_use", {{"other_share", 0.001}, {"other_seconds", others}}));
    TimedRank rank{yard, RecordLog(run, 1, 0)};
    rank.record(0, "start", {{"device", device}});
    for (int epoch = 1; epoch <= 3; ++epoch) {
      auto body = epoch_body(epoch, 2, 0);
      body["processor_seconds"] = processor;
      body["seconds"]["exposed_communication"] = waits;
      rank.record(2 * epoch, "epoch", body);
    }
    rank.record(6, "end", {{"status", "finished"}});
    CHECK(times_problem(yard) == problem);
    CHECK(yard.final()["epoch_processor_seconds"] == processor);
    CHECK(yard.final().times_count == problem.empty());
  }
}

TEST_CASE("parts of the time are means over the timed epochs and all ranks") {
  CheckedYard yard;
  const auto run = yard.launched("mlp", 2, 0);
  for (int rank = 0; rank < 2; ++rank) {
    RecordLog log(run, 1, rank);
    for (int epoch = 1; epoch <= 3; ++epoch) {
      json body = epoch_body(epoch, 1, 1);
      body["seconds"] = {{"data", epoch + 10 * rank}, {"forward", 0.5}};
      yard.ingest.record(log.next("epoch", body));
    }
  }
  const auto parts = time_parts(yard.database, "sweep");
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].seconds.at("data") == doctest::Approx((2 + 3 + 12 + 13) / 4.0));
  CHECK(parts[0].seconds.at("forward") == 0.5);
  CHECK(!parts[0].seconds.contains("bubble"));
}

TEST_CASE("events of a step are relative to the first one on their host, and wrong records are kept whole") {
  CheckedYard yard;
  const auto run = yard.launched("mlp", 2, 0, 2);
  for (int rank = 0; rank < 2; ++rank) {
    RecordLog log(run, 1, rank);
    json start = start_body(rank, 2);
    start["host"] = "node";
    yard.ingest.record(log.next("start", start));
    yard.ingest.record(log.next("epoch", epoch_body(1, 1, 1)));
    const auto step = [&](const json& begin, const json& end) {
      const json event{{"part", "forward"}, {"micro_batch", 3}, {"begin", begin}, {"end", end}};
      yard.ingest.record(log.next("step", {{"epoch", 2}, {"step", 9}, {"events", {event}}}));
    };
    step(1, 2);  // is replaced
    step(1000.5 + rank, 1002);
    step(5, 4);
    step("a", 2);
    step(nullptr, 2);
    yard.ingest.record(log.next("step", {{"epoch", 2}, {"step", 8}, {"events", {"x"}}}));
    yard.ingest.record(log.next("epoch", epoch_body(2, 1, 1)));
  }
  CHECK(rows_of(yard.database, "SELECT * FROM extra_record WHERE type = 'step' AND problem <> ''").size() ==
        8);
  CHECK(
      rows_of(
          yard.database,
          "SELECT epoch, step, rank, host, part, micro_batch, begin_seconds, end_seconds FROM step_event") ==
      std::vector<std::string>{R"([2,9,0,"node","forward",3,0.0,1.5])",
                               R"([2,9,1,"node","forward",3,1.0,1.5])"});
  const auto events = step_events(yard.database, "sweep");
  REQUIRE(events.size() == 2);
  CHECK(events[1].step == 9);
  CHECK(events[1].begin == 1);
}
