// Runs that keep checkpoints resume after the last complete epoch.
#include <fstream>

#include <doctest/doctest.h>

#include "db/queries/queries.h"
#include "experiments/protocol/checkpoint.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"
#include "orchestrator/plan/resume_point.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace fs = std::filesystem;

namespace {

experiments::Run keeping(experiments::Run run) {
  run.epochs = 5;
  run.checkpoint = "epoch";
  return run;
}

// Rank 0 writes `start`, a probe, and then for each epoch an `epoch` record, its checkpoint and a
// `checkpoint` record.
constexpr const char* after_three_epochs = "kill-after-8";
constexpr const char* before_its_third_checkpoint = "kill-after-7";

// A run whose first attempt ended after three of five epochs. It left the last two checkpoints.
struct Interrupted {
  explicit Interrupted(const char* reported = after_three_epochs, const std::string& strategy = "single",
                       std::int64_t replicas = 1)
      : bench({keeping(mlp_run(strategy, replicas, 0))}) {
    bench.journal();
    bench.on_message("0", reported);
    CHECK(bench.sweep().failures.size() == 1);
    bench.on_message("0", "finish");
    bench.status.messages.clear();
  }

  fs::path folder() const { return bench.yard.run(bench.key(0)) / experiments::checkpoints_folder_name; }
  fs::path checkpoint(int epoch) const { return experiments::checkpoint_file(folder(), epoch, 0); }
  ResumePoint point() const { return find_resume_point(bench.yard, bench.database, bench.plan().runs[0]); }
  experiments::Launch launched(int attempt) const {
    return experiments::read_launch(bench.attempt(0, attempt) / experiments::run_file_name);
  }
  std::vector<double> losses() const {
    std::vector<double> losses;
    for (const auto& epoch : db::epoch_averages(bench.database, "bench"))
      losses.push_back(80 * epoch["train_loss"]);
    return losses;
  }

  SweepFixture bench;
};

// The losses of the fake rank. Each epoch depends on all epochs before it.
std::vector<double> uninterrupted_losses() {
  std::vector<double> losses;
  double memory = 1;
  for (int epoch = 1; epoch <= 5; ++epoch) losses.push_back(40 + (memory = memory / 2 + epoch));
  return losses;
}

void flip_a_bit(const fs::path& file) {
  std::string bytes = text_of(file);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
}

void check_finishes_as_if_never_interrupted(Interrupted& run) {
  CHECK(run.bench.sweep().finished == 1);
  const auto losses = run.losses();
  const auto expected = uninterrupted_losses();
  REQUIRE(losses.size() == expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(expected[i]));
  CHECK_FALSE(fs::exists(run.folder()));
}

}  // namespace

TEST_CASE("an interrupted run resumes after its last epoch, reports it, and has each epoch once") {
  Interrupted run;
  check_finishes_as_if_never_interrupted(run);
  const auto second = run.launched(2);
  CHECK(second.resumes == experiments::Resumes{1, 3});
  CHECK(second.checkpoints == run.folder());
  CHECK(run.bench.status.messages ==
        std::vector<std::string>{"mlp single seed 0: resumes after epoch 3 of attempt 1"});
  const auto records = record_types(run.bench.attempt(0, 2) / experiments::rank_records_name(0));
  CHECK(records == std::vector<std::string>{"start", "probe", "epoch", "checkpoint", "epoch", "checkpoint",
                                            "test", "end"});
  const auto summary = db::run_summaries(run.bench.database).at(0);
  CHECK(summary.epochs_done == 5);
  CHECK(summary.total_train_seconds == doctest::Approx(5 * 0.0015));
}

TEST_CASE("a retry within a sweep resumes, as does a run whose orchestrator was killed") {
  SweepFixture bench({keeping(mlp_run("single", 1, 0))});
  bench.journal();
  bench.on_message("", after_three_epochs);
  bench.options.max_retries = 1;
  bench.options.backoff_seconds = 0;
  CHECK(bench.sweep().finished == 1);
  const auto second = experiments::read_launch(bench.attempt(0, 2) / experiments::run_file_name);
  CHECK(second.resumes == experiments::Resumes{1, 3});
}

TEST_CASE("a run that keeps no checkpoints starts from the beginning, even if there are checkpoints") {
  Interrupted run;
  run.bench.experiment.runs[0].checkpoint = "";
  CHECK(run.bench.sweep().finished == 1);
  CHECK_FALSE(run.launched(2).resumes.has_value());
  CHECK(run.launched(2).checkpoints.empty());
}

TEST_CASE("an epoch without its checkpoint is trained again, from the checkpoint before") {
  Interrupted run(before_its_third_checkpoint);
  CHECK(run.point().at == experiments::Resumes{1, 2});
  check_finishes_as_if_never_interrupted(run);
}

TEST_CASE("the checkpoints of an attempt are kept for the next if an attempt between them wrote none") {
  Interrupted run;
  const auto first = run.bench.plan();
  {  // a second attempt that wrote nothing
    experiments::Launch launch = run.launched(1);
    launch.attempt = 2;
    launch.resumes = experiments::Resumes{1, 3};
    launch.records = run.bench.attempt(0, 2);
    fs::create_directories(launch.records);
    experiments::write_launch(launch);
  }
  check_finishes_as_if_never_interrupted(run);
  CHECK(run.bench.status_of(0, 2) == "interrupted");
  CHECK(run.launched(3).resumes == experiments::Resumes{1, 3});
}

TEST_CASE("if a checkpoint is damaged, the one before it is used, and the message is recorded") {
  Interrupted run;
  flip_a_bit(run.checkpoint(3));
  check_finishes_as_if_never_interrupted(run);
  CHECK(run.launched(2).resumes == experiments::Resumes{1, 2});
  REQUIRE(run.bench.status.messages.size() == 2);
  CHECK(contains(run.bench.status.messages[0], "the checkpoint of epoch 3"));
  CHECK(contains(run.bench.status.messages[0], "the checkpoint is damaged: CRC is "));
  CHECK(run.bench.status.messages[1] == "mlp single seed 0: resumes after epoch 2 of attempt 1");
  CHECK(contains(text_of(run.bench.attempt(0, 2) / experiments::orchestrator_records_name),
                 "the checkpoint is damaged: CRC is "));
}

TEST_CASE("if all checkpoints are damaged, the run starts from the beginning and reports it") {
  Interrupted run;
  flip_a_bit(run.checkpoint(3));
  std::ofstream(run.checkpoint(2)) << "no checkpoint";
  check_finishes_as_if_never_interrupted(run);
  CHECK_FALSE(run.launched(2).resumes.has_value());
  REQUIRE(run.bench.status.messages.size() == 3);
  CHECK(run.bench.status.messages[2] == "mlp single seed 0: starts from the beginning");
}

TEST_CASE("a checkpoint is used only if all ranks have recorded its epoch") {
  SweepFixture bench({keeping(mlp_run("ddp", 2, 0))});
  bench.journal();
  bench.on_message("0", "hang-after-6");               // both have two epochs
  bench.on_message("1", "kill-after-3 once 0 hangs");  // after its first epoch
  CHECK(bench.sweep().failures.size() == 1);
  const auto point = find_resume_point(bench.yard, bench.database, bench.plan().runs[0]);
  CHECK(point.at == experiments::Resumes{1, 1});
  REQUIRE(point.problems.size() == 1);
  CHECK(point.problems[0] == "skipped the checkpoint of epoch 2: not all ranks have recorded its epoch");
}

TEST_CASE("training resumes after the last epoch that all stages have written in the same attempt") {
  Interrupted run;
  PlannedRun planned = run.bench.plan().runs[0];
  planned.run.strategy.stages = 2;
  const auto write = [&](std::int64_t epoch, int attempt) {
    experiments::write_checkpoint(run.folder(), {planned.key, attempt, epoch, 1, {}, {}}, {});
  };
  const auto point = [&] { return find_resume_point(run.bench.yard, run.bench.database, planned); };
  CHECK_FALSE(point().at.has_value());
  write(2, 1);
  CHECK(point().at == experiments::Resumes{1, 2});
  CHECK(point().problems ==
        std::vector<std::string>{"skipped the checkpoint of epoch 3: stage 1 is missing"});
  write(3, 1);
  CHECK(point().at == experiments::Resumes{1, 3});
  write(3, 4);
  CHECK(point().at == experiments::Resumes{1, 2});
}

TEST_CASE("a checkpoint is used only if the weights kept at its time are unchanged") {
  Interrupted run;
  const fs::path weights = experiments::kept_weights_file(run.folder(), 3);
  std::ofstream(weights) << "123456789";
  experiments::write_checkpoint(run.folder(),
                                {run.bench.key(0), 1, 3, 0, experiments::FileSum{9, "e3069283"}, {}}, {});
  CHECK(run.point().at == experiments::Resumes{1, 3});
  std::ofstream(weights) << "123456780";
  CHECK(run.point().at == experiments::Resumes{1, 2});
  fs::remove(weights);
  CHECK(run.point().at == experiments::Resumes{1, 2});
}

TEST_CASE(
    "a run with another release, build, environment or LibTorch starts from the beginning, and on another "
    "host it resumes") {
  Interrupted run;
  PlannedRun planned = run.bench.plan().runs[0];
  const auto with = [&](auto change) {
    PlannedRun other = planned;
    change(other.circumstances);
    return find_resume_point(run.bench.yard, run.bench.database, other).at;
  };
  CHECK(with([](auto& now) { now.host = "elsewhere"; }) == experiments::Resumes{1, 3});
  CHECK(with([](auto& now) { now.threads_per_rank = 7; }) == experiments::Resumes{1, 3});
  CHECK_FALSE(with([](auto& now) { now.release = "0.0.9 Release"; }).has_value());
  CHECK_FALSE(with([](auto& now) { now.libtorch = "2.11.0"; }).has_value());
  CHECK_FALSE(with([](auto& now) { now.build = "3fa9c1d20e77"; }).has_value());
  CHECK_FALSE(with([](auto& now) { now.environment["ATEN_CPU_CAPABILITY"] = "default"; }).has_value());
}

TEST_CASE("a run that finished elsewhere is trained here from the beginning") {
  Interrupted run;
  const std::string kept = text_of(run.checkpoint(3));
  CHECK(run.bench.sweep().finished == 1);
  fs::create_directories(run.folder());
  std::ofstream(run.checkpoint(3), std::ios::binary) << kept;  // from before it finished
  CHECK_FALSE(run.point().at.has_value());
}

TEST_CASE("checkpoints left by a finished run are removed, and a link in their place is not followed") {
  Interrupted run;
  CHECK(run.bench.sweep().finished == 1);
  fs::create_directories(run.folder());
  run.bench.sweep();
  CHECK_FALSE(fs::exists(run.folder()));

  Interrupted other;
  const fs::path outside = other.bench.folder.path / "outside";
  fs::create_directories(outside);
  fs::rename(other.checkpoint(3), experiments::checkpoint_file(outside, 3, 0));
  fs::remove_all(other.folder());
  fs::create_directory_symlink(outside, other.folder());
  check_finishes_as_if_never_interrupted(other);
  CHECK_FALSE(other.launched(2).resumes.has_value());
  CHECK(fs::exists(experiments::checkpoint_file(outside, 3, 0)));
  CHECK(std::distance(fs::directory_iterator(outside), {}) == 1);
}
