// The median epoch, and how its ranks spent it.
#include "db/queries/step_times.h"

#include <doctest/doctest.h>

#include "tests/db/support/live_yard.h"
#include "tests/db/support/yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;

TEST_CASE("the median epoch takes the seconds that verdicts use") {
  const std::vector<std::vector<double>> cases{
      {9}, {9, 1}, {9, 1, 4}, {9, 5, 1, 3}, {9, 5, 1, 3, 100}, {1, 7, 7, 7, 8, 6}};
  for (const auto& seconds : cases) {
    Yard yard;
    const auto run = make_run("mlp", 2, 0, static_cast<std::int64_t>(seconds.size()));
    yard.plan({run});
    finish(yard.ingest, run, make_launch(run), seconds);
    CAPTURE(seconds.size());
    const auto epochs = middle_epochs(yard.database, "sweep");
    REQUIRE(epochs.size() == 1);
    CHECK(epochs[0].run_key == key(run));
    CHECK(epochs[0].train_seconds == doctest::Approx(yard.final()["epoch_train_seconds"]));
    REQUIRE(epochs[0].ranks.size() == 2);
    CHECK(epochs[0].ranks[1].passed.at("backward") == doctest::Approx(0.75));
    CHECK(epochs[0].steps == 0);  // no record states the number of steps
    CHECK(epochs[0].ranks[0].on_core.empty());
    CHECK(epochs[0].transport == "");
    CHECK(!epochs[0].ranks[0].passed.contains("transfer"));
  }
}

TEST_CASE("the median of an even number of epochs is a mean, and unfinished runs are omitted") {
  Yard yard;
  const auto run = make_run("mlp", 1, 0, 4), running = make_run("mlp", 1, 1, 4);
  yard.plan({run, running});
  for (const auto& each : {run, running}) {
    yard.ingest.run_file(experiments::to_json(make_launch(each)));
    RecordLog log(each, 1, 0);
    nlohmann::json start = start_body(0, 1);
    start["transport"] = "none";
    yard.ingest.record(log.next("start", start));
    for (int epoch = 1; epoch <= 4; ++epoch) {
      nlohmann::json body = epoch_body(epoch, epoch, 0.5, {});
      body["seconds"]["forward"] = 0.1 * epoch;
      body["steps"] = 10 * epoch;
      body["transfer_seconds"] = 0.01 * epoch;
      body["core_seconds"] = {{"forward", 0.02 * epoch}, {"transfer", 0.001}};
      yard.ingest.record(log.next("epoch", body));
    }
    if (each == run) yard.ingest.record(log.next("end", end_body("finished", 10)));
  }
  const auto epochs = middle_epochs(yard.database, "sweep");
  REQUIRE(epochs.size() == 1);
  CHECK(epochs[0].train_seconds == doctest::Approx(3));  // the middle of 2, 3, 4
  CHECK(epochs[0].steps == 30);
  CHECK(epochs[0].transport == "none");
  const RankTimes& rank = epochs[0].ranks.at(0);
  CHECK(rank.passed.at("forward") == doctest::Approx(0.3));
  CHECK(rank.passed.at("transfer") == doctest::Approx(0.03));
  CHECK(rank.on_core.at("forward") == doctest::Approx(0.06));
  CHECK(rank.on_core.at("transfer") == doctest::Approx(0.001));
}
