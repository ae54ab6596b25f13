// Resuming from a checkpoint gives the same bits as the uninterrupted run.
#include "runner/training/checkpoints.h"

#include <fstream>
#include <map>

#include "base/files.h"
#include "experiments/protocol/checkpoint.h"
#include "experiments/protocol/record.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/launched_ranks.h"
#include "tests/runner/support/replicas.h"
#include "tests/runner/support/small_runs.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/user_error.h"

namespace trainyard::runner::checkpoints_test {

using namespace testing;
using nlohmann::json;
using trainyard::tests::read_text;
using trainyard::tests::ScratchFolder;

namespace fs = std::filesystem;

constexpr std::int64_t epochs = epochs_of_small_runs;

// Everything that the ranks recorded, except times, by rank and by type or epoch.
std::map<std::string, std::string> results_of(const experiments::Launch& launch) {
  std::map<std::string, std::string> results;
  for (int rank = 0; rank < launch.run.strategy.world_size(); ++rank)
    for (const json& record : records_of(launch, rank)) {
      const std::string type = record.at("type");
      const std::string of_rank = "rank " + std::to_string(rank) + " ";
      if (type == "epoch")
        results[of_rank + "epoch " + record.at("epoch").dump()] =
            record.at("metrics").dump() + record.value("loss_scale", json()).dump() +
            record.value("skipped_steps", json()).dump();
      if (type == "test") results[of_rank + type] = record.at("metrics").dump();
      if (type == "start") results[of_rank + type] = record.at("initial_weights").dump();
      if (type == "end") results[of_rank + type] = record.at("status").dump();
    }
  return results;
}

// Checks that `resumed` trained the remaining epochs of `whole` with the same results, and nothing else.
void check_equal(const experiments::Launch& resumed, const experiments::Launch& whole) {
  const auto expected = results_of(whole);
  const auto found = results_of(resumed);
  const auto trained = static_cast<std::size_t>(epochs - resumed.resumes->after_epoch);
  CHECK(found.size() ==
        static_cast<std::size_t>(whole.run.strategy.world_size()) * (3 + trained));  // start, test, end
  for (const auto& each : found) {
    CAPTURE(each.first);
    CHECK(each.second == expected.at(each.first));
  }
}

std::string error_of(const experiments::Launch& launch) {
  return trainyard::tests::user_error_of([&] { train_launched(launch); });
}

TEST_CASE("a resumed run trains the same bits as the uninterrupted run, under every strategy") {
  struct Case {
    experiments::Run model;
    std::vector<Shape> shapes;
  };
  for (const Case& each :
       {Case{small_mlp(), {single, ddp, mp, pipeline, mp_ddp, served, in_parts}},
        Case{small_vgg11(), {single, ddp, in_parts}}, Case{small_seq2seq(), {pipeline, in_parts}}})
    for (const Shape& shape : each.shapes) {
      CAPTURE(each.model.model);
      CAPTURE(shape.kind);
      const ScratchFolder folder;
      const auto whole = launch_in(folder.path(), shaped(each.model, shape), "epoch");
      train_launched(whole);
      const auto resumed = after(whole, epochs - 1);
      train_launched(resumed);
      check_equal(resumed, whole);
    }
}

// The loss of the last epoch over all ranks, of training and of validation.
std::vector<double> last_losses(const experiments::Launch& launch) {
  std::map<std::string, double> sums;
  for (int rank = 0; rank < launch.run.strategy.world_size(); ++rank)
    for (const json& record : records_of(launch, rank))
      if (record.at("type") == "epoch" && record.at("epoch") == epochs)
        for (const json& metric : record.at("metrics"))
          if (metric.at("name") == "loss") sums[metric.at("phase")] += metric.at("sum").get<double>();
  return {sums.at("train"), sums.at("validation")};
}

TEST_CASE("an attempt with fewer replicas trains what one process and what all replicas train") {
  experiments::Run run = small_mlp();
  run.sampler = "exact";
  run.precision = "float64";
  run.global_batch = 100;  // not a multiple of 3
  const ScratchFolder alone, together;
  const auto one = launch_in(alone.path(), shaped(run, single), "");
  const auto whole = launch_in(together.path(), shaped(run, ddp), "epoch");
  train_launched(one);
  train_launched(whole);
  auto resumed = after(whole, epochs - 1);
  resumed.membership = experiments::Membership{2, "2 of 3 replicas: rank 1 was killed in attempt 1"};
  resumed.run.strategy = resumed.strategy();
  train_launched(resumed);
  CHECK(records_of(resumed, 0).front().at("world_size") == 2);
  for (std::size_t phase = 0; phase < 2; ++phase) {
    CHECK(last_losses(resumed)[phase] == doctest::Approx(last_losses(one)[phase]).epsilon(1e-11));
    CHECK(last_losses(resumed)[phase] == doctest::Approx(last_losses(whole)[phase]).epsilon(1e-11));
  }
}

TEST_CASE("a float16 run resumes with its loss scale") {
  const ScratchFolder folder;
  experiments::Run run = shaped(small_mlp(), mp_ddp);
  run.precision = "float16";
  run.optimizer.learning_rate = 1e6;  // so that steps are skipped and the scale changes
  const auto whole = launch_in(folder.path(), run, "epoch");
  train_launched(whole);
  REQUIRE(records_of(whole, 0).at(1).at("loss_scale") < 65536);
  const auto resumed = after(whole, epochs - 1);
  train_launched(resumed);
  check_equal(resumed, whole);
}

TEST_CASE("every optimizer resumes without a difference, with momentum and without") {
  for (const char* kind : {"sgd", "sgd without momentum", "adam", "adamw"}) {
    CAPTURE(kind);
    const ScratchFolder folder;
    experiments::Run run = shaped(small_mlp(), single);
    run.optimizer = {.kind = std::string(kind).substr(0, std::string(kind).find(' ')),
                     .learning_rate = 0.01,
                     .momentum = kind == std::string("sgd") ? 0.9 : 0,
                     .weight_decay = 0.01};
    const auto whole = launch_in(folder.path(), run, "epoch");
    train_launched(whole);
    const auto resumed = after(whole, epochs - 1);
    train_launched(resumed);
    check_equal(resumed, whole);
  }
}

TEST_CASE("checkpoints change no result, and the last two epochs are kept") {
  const ScratchFolder with, without;
  experiments::Run run = shaped(small_mlp(), mp_ddp);
  run.epochs = 3;
  const auto kept = launch_in(with.path(), run, "epoch");
  const auto none = launch_in(without.path(), run, "");
  train_launched(kept);
  train_launched(none);
  CHECK(results_of(kept) == results_of(none));
  CHECK(names_in(none.checkpoints).empty());
  CHECK(names_in(kept.checkpoints) ==
        std::vector<std::string>{"epoch-2.stage-0.checkpoint", "epoch-2.stage-1.checkpoint",
                                 "epoch-3.stage-0.checkpoint", "epoch-3.stage-1.checkpoint"});
}

TEST_CASE("a run that was interrupted after its last epoch only tests") {
  const ScratchFolder folder;
  const auto whole = launch_in(folder.path(), shaped(small_vgg11(), single), "epoch");
  train_launched(whole);
  const auto resumed = after(whole, epochs);
  train_launched(resumed);
  CHECK(types_of(records_of(resumed, 0)) == std::vector<std::string>{"start", "test", "end"});
  check_equal(resumed, whole);
}

TEST_CASE("resuming keeps the saved weights and the loss of the best epoch so far") {
  for (const char* save : {"best", "last"}) {
    CAPTURE(save);
    const ScratchFolder folder;
    experiments::Run run = shaped(small_mlp(), mp);
    run.save = save;
    // The learning rate makes the loss grow from the second epoch on.
    run.optimizer = {.kind = "sgd", .learning_rate = 0.01, .schedule = "step", .schedule_epochs = 1};
    run.optimizer.schedule_factor = 1000;
    const auto whole = launch_in(folder.path(), run, "epoch");
    train_launched(whole);
    for (const std::int64_t epoch : {epochs - 1, epochs}) {
      auto resumed = after(whole, epoch);
      resumed.run.checkpoint = "";  // the next case resumes from the same files
      train_launched(resumed);
      CHECK(read_text(resumed.records / weights_file_name) == read_text(whole.records / weights_file_name));
    }
  }
}

TEST_CASE("a resumed attempt writes its own checkpoints and removes those after its start") {
  const ScratchFolder folder;
  const auto whole = launch_in(folder.path(), shaped(small_mlp(), single), "epoch");
  train_launched(whole);
  std::ofstream(experiments::checkpoint_file(whole.checkpoints, 7, 0)) << "of another time";
  const auto resumed = after(whole, epochs - 1);
  train_launched(resumed);
  CHECK(names_in(whole.checkpoints) ==
        std::vector<std::string>{"epoch-1.stage-0.checkpoint", "epoch-2.stage-0.checkpoint"});
  CHECK(experiments::check_checkpoint(whole.checkpoints, 1, 0).attempt == 1);
  CHECK(experiments::check_checkpoint(whole.checkpoints, 2, 0).attempt == 2);
}

TEST_CASE("a checkpoint that is damaged, missing or of another attempt is an error that names it") {
  const ScratchFolder folder;
  const auto whole = launch_in(folder.path(), shaped(small_mlp(), single), "epoch");
  train_launched(whole);
  auto other = after(whole, epochs);
  other.resumes->attempt = 5;
  CHECK(error_of(other).find("belongs to run 0123456789ab, attempt 1, not to attempt 5") !=
        std::string::npos);
  const fs::path file = experiments::checkpoint_file(whole.checkpoints, epochs, 0);
  std::string bytes = read_text(file);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
  const std::string damaged = error_of(after(whole, epochs));
  CHECK(damaged.find(file.string()) == 0);
  CHECK(damaged.find("the checkpoint is damaged: CRC is ") != std::string::npos);
  fs::remove(file);
  CHECK(error_of(after(whole, epochs)).find("it cannot be read") != std::string::npos);
}

TEST_CASE("if the disk is full, the error names the checkpoint, and the records are kept") {
  const ScratchFolder folder;
  experiments::Run run = shaped(small_mlp(), single);
  const auto whole = launch_in(folder.path(), run, "epoch");
  std::string error;
  {
    const trainyard::tests::FileSizeLimit full(20'000);  // enough for the records
    try {
      train_launched(whole);
    } catch (const std::system_error& thrown) {
      error = thrown.what();
    }
  }
  CHECK(error.find(experiments::checkpoint_file(whole.checkpoints, 1, 0).string()) == 0);
  CHECK(types_of(records_of(whole, 0)) == std::vector<std::string>{"start", "epoch"});
  CHECK(names_in(whole.checkpoints).empty());
}

}  // namespace trainyard::runner::checkpoints_test
