// Predicted step times, compared with closed forms of the model in reports/results/prediction.h.
#include "reports/results/prediction.h"

#include <doctest/doctest.h>

namespace {

using namespace trainyard;
using namespace trainyard::reports;
using db::SecondsByPart;
using doctest::Approx;

constexpr double steps = 10;

// The times of a rank for an epoch of `steps` steps.
db::RankTimes rank_of(const SecondsByPart& seconds_of_step) {
  db::RankTimes rank;
  for (const auto& [part, seconds] : seconds_of_step) rank.passed[part] = steps * seconds;
  return rank;
}

MeasuredRun run_of(const std::string& kind, std::int64_t replicas, std::int64_t stages, double step_seconds,
                   const std::vector<db::RankTimes>& ranks) {
  MeasuredRun run;
  run.run.model = "mlp";
  run.run.strategy.name = run.run.strategy.kind = kind;
  run.run.strategy.replicas = replicas;
  run.run.strategy.stages = stages;
  run.launch.run = run.run;
  run.launch.circumstances.host = "one";
  for (int r = 0; r < replicas * stages; ++r) run.launch.devices.push_back("cpu:" + std::to_string(r));
  run.epoch = {"", steps * step_seconds, steps, ranks, "gloo"};
  return run;
}

const SecondsByPart alone{{"data", 0.2}, {"forward", 2},     {"backward", 4}, {"exposed_communication", 0},
                          {"bubble", 0}, {"optimizer", 0.5}, {"other", 0.1}};

SecondsByPart with(SecondsByPart seconds, const SecondsByPart& more) {
  for (const auto& [part, value] : more) seconds[part] = value;
  return seconds;
}

MeasuredRun single() {
  return run_of("single", 1, 1, 6.8, {rank_of(alone)});
}

MeasuredRun two_replicas(double waits) {
  const auto rank = rank_of(
      with(alone, {{"data", 0.1}, {"forward", 1.2}, {"backward", 2.2}, {"exposed_communication", waits}}));
  return run_of("ddp", 2, 1, 0.1 + 1.2 + 2.2 + waits + 0.5 + 0.1, {rank, rank});
}

}  // namespace

TEST_CASE("replicas with hidden gradients take their share of the input and computation of one device") {
  const auto found = predictions({single(), two_replicas(0)});
  REQUIRE(found.size() == 1);  // no prediction for single
  CHECK(found[0].arm == "ddp");
  CHECK(found[0].missing == "");
  CHECK(found[0].basis == "single on 64 of 128 samples, with the measured waits for gradients");
  CHECK(found[0].predicted.seconds == Approx((0.2 + 2 + 4) / 2 + 0.5 + 0.1));
  CHECK(found[0].predicted.parts.compute == Approx(3));
  CHECK(found[0].measured.seconds == Approx(4.1));
  CHECK(found[0].measured.parts.compute == Approx(3.4));
  CHECK(found[0].measured.parts.sum() == Approx(found[0].measured.seconds));
  CHECK(found[0].error_percent() == Approx(100 * (3.7 / 4.1 - 1)));
  CHECK(predictions({single(), two_replicas(0.7)})[0].predicted.seconds == Approx(3.7 + 0.7));
}

TEST_CASE("replicas with shared memory each update their shard of the parameters") {
  MeasuredRun replicas = two_replicas(0);
  replicas.epoch.transport = "shared memory";
  CHECK(predictions({single(), replicas})[0].predicted.seconds == Approx((0.2 + 2 + 4 + 0.5) / 2 + 0.1));
}

TEST_CASE("measured independent ranks are preferred to a single run") {
  const auto slower = rank_of(with(alone, {{"forward", 3}, {"backward", 5}}));
  const auto found =
      predictions({single(), two_replicas(0), run_of("independent", 2, 1, 8.8, {slower, slower})});
  REQUIRE(found.size() == 2);
  CHECK(found[0].predicted.seconds == Approx((0.2 + 3 + 5) / 2 + 0.5 + 0.1));
  CHECK(found[0].basis.starts_with("2 independent ranks at once on 64 of 128 samples"));
  CHECK(found[1].arm == "independent");
  CHECK(found[1].basis == "single");
  CHECK(found[1].predicted.seconds == Approx(6.8));
  CHECK(found[1].measured.seconds == Approx(8.8));
}

TEST_CASE("two replicas on one core take as long as one device, and half of this is waiting for the core") {
  MeasuredRun pair = two_replicas(0);
  pair.launch.devices = {"cpu:0", "cpu:0"};
  pair.launch.devices_shared = true;
  for (db::RankTimes& rank : pair.epoch.ranks) {
    rank.on_core = rank.passed;
    for (auto& [part, seconds] : rank.passed) seconds *= 2;
  }
  const auto found = predictions({single(), pair});
  REQUIRE(found[0].missing == "");
  CHECK(found[0].predicted.seconds == Approx(2 * 3.7));
  CHECK(found[0].predicted.parts.core_wait == Approx(3.7));
  CHECK(found[0].measured.parts.core_wait == Approx(0.1 + 1.2 + 2.2 + 0.5));
}

TEST_CASE("a pipeline is simulated from the work of each rank: its bubble is (p - 1) / (m + p - 1)") {
  // 4 micro-batches, each with 1 forward and 2 backward on each of 2 stages. Measured waiting is ignored.
  const auto stage = rank_of({{"data", 0},
                              {"forward", 4},
                              {"backward", 8},
                              {"exposed_communication", 0},
                              {"transfer", 0},
                              {"bubble", 77},
                              {"optimizer", 0},
                              {"other", 0}});
  for (const char* schedule : {"gpipe", "1f1b"}) {
    MeasuredRun run = run_of("pipeline", 1, 2, 16, {stage, stage});
    run.run.strategy.schedule = schedule;
    run.run.strategy.micro_batches = 4;
    const auto found = predictions({run});
    REQUIRE(found[0].missing == "");
    // The second stage ends before the first, so its last wait is not part of the epoch.
    CHECK(found[0].predicted.seconds == Approx(15));
    CHECK(found[0].predicted.parts.compute == Approx(12));
    CHECK(found[0].predicted.parts.bubble == Approx(15.0 / 5).epsilon(0.01));
    CHECK(found[0].error_percent() == Approx(100 * (15.0 / 16 - 1)));
  }
}

TEST_CASE("with replicated stages, the reduction is that of the slowest replica") {
  const SecondsByPart fast{{"data", 0},     {"forward", 1}, {"backward", 1},  {"exposed_communication", 1.5},
                           {"transfer", 0}, {"bubble", 0},  {"optimizer", 0}, {"other", 0}};
  const SecondsByPart slow = with(fast, {{"backward", 2}, {"exposed_communication", 0.5}});
  MeasuredRun run = run_of("mp-ddp", 2, 2, 8, {rank_of(fast), rank_of(fast), rank_of(slow), rank_of(slow)});
  const auto found = predictions({run});
  REQUIRE(found[0].missing == "");
  // The slower replica's two stages in turn, then the reduction of the first stage.
  CHECK(found[0].predicted.seconds == Approx(2 * (1 + 2) + 0.5).epsilon(0.02));
}

TEST_CASE("missing measurements are reported, not guessed") {
  MeasuredRun foreign = two_replicas(0);
  foreign.run.strategy.kind = "foreign";
  foreign.run.strategy.name = "mine";
  MeasuredRun old = two_replicas(0);
  old.epoch.steps = 0;
  MeasuredRun old_shared = two_replicas(0);
  old_shared.launch.devices_shared = true;
  MeasuredRun elsewhere = single();
  elsewhere.launch.circumstances.host = "another";
  const auto why = [](std::vector<MeasuredRun> runs) { return predictions(runs)[0].missing; };
  CHECK(why({single(), foreign}) == "a program of your own does not record the parts of its steps");
  CHECK(why({single(), old}) == "trained by a release that did not record the parts of a step");
  CHECK(why({single(), old_shared}) ==
        "its ranks share cores, but the processor time of each rank was not recorded");
  for (db::RankTimes& rank : old_shared.epoch.ranks) rank.on_core = rank.passed;
  old_shared.launch.circumstances.threads_per_rank = 2;
  CHECK(
      why({single(), old_shared}) ==
      "its ranks share cores and have several threads each, so the processor time of each rank is not known");
  CHECK(why({two_replicas(0)}) == "the sweep has no run on one device to predict from");
  CHECK(why({elsewhere, two_replicas(0)}) ==
        "single was trained with another host, release, thread count or precision");
}

TEST_CASE("a prediction uses only runs that were timed like the arm") {
  MeasuredRun elsewhere = run_of("single", 1, 1, 100, {rank_of(with(alone, {{"forward", 50}}))});
  elsewhere.launch.circumstances.host = "another";
  MeasuredRun threads = elsewhere;
  threads.launch.circumstances = single().launch.circumstances;
  threads.launch.circumstances.threads_per_rank = 2;
  MeasuredRun half = elsewhere;
  half.launch.circumstances = single().launch.circumstances;
  half.run.precision = "bfloat16";
  const double alike = predictions({single(), two_replicas(0)})[0].predicted.seconds;
  CHECK(predictions({elsewhere, threads, half, single(), two_replicas(0)})[0].predicted.seconds ==
        Approx(alike));
  CHECK(predictions({threads, two_replicas(0)})[0].missing.find("another host, release, thread count") !=
        std::string::npos);
}

TEST_CASE("if independent ranks were trained on another host, the prediction starts from single") {
  const auto slower = rank_of(with(alone, {{"forward", 3}}));
  MeasuredRun limit = run_of("independent", 2, 1, 8, {slower, slower});
  limit.launch.circumstances.host = "another";
  const auto found = predictions({single(), two_replicas(0), limit});
  REQUIRE(found.size() == 2);
  CHECK(found[0].basis.starts_with("single on 64 of 128 samples"));
  CHECK(found[0].predicted.seconds == Approx(3.7));
  CHECK(found[1].missing.starts_with("single was trained with another host"));
}

TEST_CASE("arms are distinguished by all varied values, and sorted by model, cell and arm") {
  std::vector<MeasuredRun> runs;
  for (const char* model : {"mlp", "cnn"}) {
    for (const std::int64_t batch : {64, 32}) {
      for (MeasuredRun run : {two_replicas(0), single()}) {
        run.run.model = model;
        run.run.global_batch = batch;
        run.run.axes = {
            {"model", Value(std::string(model))}, {"batch", Value(batch)}, {"seed", Value(std::int64_t{0})}};
        runs.push_back(run);
      }
    }
  }
  std::vector<std::string> names;
  for (const Prediction& one : predictions(runs)) names.push_back(one.model + " " + one.cell + " " + one.arm);
  CHECK(names == std::vector<std::string>{"cnn batch 32 ddp", "cnn batch 64 ddp", "mlp batch 32 ddp",
                                          "mlp batch 64 ddp"});
}
