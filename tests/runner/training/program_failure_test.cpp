// trainyard-runner as a process: errors of a launch and forced ends.
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include <signal.h>

#include "experiments/protocol/record.h"
#include "experiments/protocol/seal.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/launched_ranks.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::runner;
using namespace trainyard::runner::testing;
using namespace std::chrono_literals;
using nlohmann::json;
using trainyard::tests::ScratchFolder;

namespace {

// A limit for events that must happen long before the end of the run, even on a busy machine.
// The runs would train for 15 minutes, and ranks would wait 5 minutes for one another.
constexpr auto soon = 60s;

void wait_for_first_epoch(const experiments::Launch& launch) {
  const auto limit = std::chrono::steady_clock::now() + soon;
  while (records_of(launch, 0).size() < 2) {
    REQUIRE(std::chrono::steady_clock::now() < limit);
    std::this_thread::sleep_for(50ms);
  }
}

}  // namespace

TEST_CASE("fewer training samples than replicas is an error of every rank") {
  const ScratchFolder folder;
  experiments::Launch launch = launch_of(folder.path(), 3, 1);
  launch.run.data.train_samples = 2;
  LaunchedRanks ranks(launch);
  for (const auto& rank : ranks.ranks) {
    CHECK(rank->wait(60s) == 1);
    CHECK(rank->read_all().starts_with("error: 2 training samples are fewer than 3 replicas; "));
  }
}

TEST_CASE("if a rank is killed, its peer does not wait for it, but ends with an error and records it") {
  const ScratchFolder folder;
  const experiments::Launch launch = launch_of(folder.path(), 2, 100'000);
  LaunchedRanks run(launch);
  wait_for_first_epoch(launch);
  run.ranks[1]->kill(SIGKILL);
  REQUIRE(run.ranks[0]->wait(soon) == 1);
  const json end = records_of(launch, 0).back();
  CHECK(end.at("type") == "end");
  CHECK(end.at("status") == "failed");
  CHECK(end.at("error").get<std::string>().starts_with("rank 0: "));
  CHECK(end.at("error").get<std::string>().ends_with(" failed: rank 1 has ended"));
  CHECK(end.at("reason") == "peer_lost");
  CHECK(run.ranks[0]->read_all().find("error: rank 0: ") != std::string::npos);
}

TEST_CASE("SIGTERM ends a rank with code 143, however much it still has to train") {
  const ScratchFolder folder;
  const experiments::Launch launch = launch_of(folder.path(), 1, 100'000);
  LaunchedRanks run(launch);
  wait_for_first_epoch(launch);
  run.ranks[0]->kill(SIGTERM);
  CHECK(run.ranks[0]->wait(soon) == 143);
}

TEST_CASE("a broken connection ends neither a rank nor the store by SIGPIPE") {
  const ScratchFolder folder;
  experiments::Launch launch = launch_of(folder.path(), 2, 100'000);
  launch.circumstances.communicator = "gloo";
  LaunchedRanks run(launch);
  wait_for_first_epoch(launch);
  run.store->kill(SIGPIPE);
  for (const auto& rank : run.ranks) rank->kill(SIGPIPE);
  CHECK_FALSE(run.store->wait(200ms));
  CHECK_FALSE(run.ranks[0]->wait(200ms));
  CHECK_FALSE(run.ranks[1]->wait(1ms));
}

TEST_CASE("a line that is still being written is not a record yet") {
  const ScratchFolder folder;
  const experiments::Launch launch = launch_of(folder.path(), 1, 1);
  const auto file = launch.records / experiments::rank_records_name(0);
  experiments::RecordWriter(file, launch.key, launch.attempt, 0).append("message", {{"text", "whole"}});
  const std::string whole = trainyard::tests::read_text(file);
  trainyard::tests::write_text(file, whole + whole.substr(0, whole.size() / 2));
  CHECK(records_of(launch, 0).size() == 1);
  trainyard::tests::write_text(file, whole + whole);
  CHECK(records_of(launch, 0).size() == 2);
}

TEST_CASE("a rank with an unknown name prints one line on stderr and writes only an end record") {
  const std::vector<std::pair<std::function<void(experiments::Run&)>, std::string>> mistakes{
      {[](auto& run) { run.strategy.kind = "pipelined"; }, "there is no strategy \"pipelined\""},
      {[](auto& run) { run.optimizer.schedule = "cosin"; }, "there is no learning rate schedule \"cosin\""},
      {[](auto& run) { run.augmentation = "flop"; }, "there is no augmentation \"flop\""},
      {[](auto& run) { run.precision = "float61"; }, "there is no precision \"float61\""},
      {[](auto& run) { run.sampler = "exakt"; }, "there is no sampler \"exakt\""}};
  for (const auto& [make, error] : mistakes) {
    const ScratchFolder folder;
    experiments::Launch launch = launch_of(folder.path(), 1, 1);
    make(launch.run);
    LaunchedRanks run(launch);
    REQUIRE(run.ranks[0]->wait(60s) == 1);
    CHECK(run.ranks[0]->read_all().starts_with("error: " + error));
    const auto records = records_of(launch, 0);
    REQUIRE(types_of(records) == std::vector<std::string>{"end"});
    CHECK(records[0].at("error").get<std::string>().starts_with(error));
    CHECK(records[0].at("reason") == "failed");
  }
}

TEST_CASE(
    "a rank writes to the folder of its run.json or to --records, and never to another folder in run.json") {
  const ScratchFolder folder;
  experiments::Launch launch = launch_of(folder / "here", 1, 1);
  std::filesystem::create_directories(launch.records);
  std::filesystem::create_directories(folder / "elsewhere");
  const auto file = launch.records / experiments::run_file_name;
  experiments::write_launch(launch);
  auto redirected = json::parse(trainyard::tests::read_text(file));
  redirected["records"] = (folder / "elsewhere").string();
  redirected.erase("crc");
  trainyard::tests::write_text(file, experiments::sealed(redirected.dump()));

  Child astray({TRAINYARD_RUNNER}, {{"TRAINYARD_RUN", file.string()}});
  CHECK(astray.wait(60s) == 1);
  CHECK(astray.read_all().starts_with("error: " + file.string() + ": records is " +
                                      (folder / "elsewhere").string()));
  CHECK(std::filesystem::is_empty(folder / "elsewhere"));

  Child by_hand({TRAINYARD_RUNNER, "--records", (folder / "by hand").string()},
                {{"TRAINYARD_RUN", file.string()}});
  CHECK(by_hand.wait(60s) == 0);
  launch.records = folder / "by hand";
  CHECK(types_of(records_of(launch, 0)).back() == "end");
}

TEST_CASE("wrong environment variables are errors that name them") {
  const auto error_with = [](const std::map<std::string, std::string>& environment) {
    Child rank({TRAINYARD_RUNNER}, environment);
    CHECK(rank.wait(60s) == 1);
    return rank.read_all();
  };
  CHECK(error_with({}).starts_with("error: TRAINYARD_RUN is not set"));
  CHECK(error_with({{"TRAINYARD_RUN", "/nowhere"}, {"WORLD_SIZE", "two"}})
            .starts_with("error: WORLD_SIZE=two is not an integer"));
  CHECK(error_with({{"TRAINYARD_RUN", "/nowhere"}, {"WORLD_SIZE", "2"}, {"RANK", "2"}})
            .starts_with("error: RANK=2 is not an integer in 0 … 1"));
  CHECK(error_with({{"TRAINYARD_RUN", "/nowhere"}, {"WORLD_SIZE", "2"}})
            .starts_with("error: WORLD_SIZE is 2 but neither TRAINYARD_STORE nor MASTER_PORT is set"));
}
