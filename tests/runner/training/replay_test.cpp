// Runs of asynchronous servers: what they record, and their replay in one process.
#include <algorithm>
#include <array>
#include <map>

#include "experiments/protocol/server_log.h"
#include "runner/training/rank_records.h"
#include "runner/training/training.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/launched_ranks.h"
#include "tests/runner/support/replicas.h"
#include "tests/runner/support/small_runs.h"
#include "tests/support/contains.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/user_error.h"

namespace trainyard::runner::replay_test {

using namespace testing;
using nlohmann::json;
using trainyard::tests::ScratchFolder;

namespace fs = std::filesystem;

constexpr int workers = 3, servers = 2;

experiments::Run async_run(experiments::Run run, std::optional<std::int64_t> bound = {}) {
  run = shaped(std::move(run), {"parameter-server", workers, 1, "", 1, servers});
  run.strategy.mode = "async";
  run.strategy.staleness = bound;
  run.sampler = "exact";
  run.data.train_samples = 130;
  return run;
}

std::vector<json> epochs_of(const experiments::Launch& launch, int rank) {
  std::vector<json> epochs = records_of(launch, rank);
  std::erase_if(epochs, [](const json& record) { return record.at("type") != "epoch"; });
  return epochs;
}

std::vector<std::string> weights_of(const experiments::Launch& launch) {
  std::vector<std::string> weights;
  for (const json& epoch : epochs_of(launch, 0)) weights.push_back(epoch.at("weights"));
  return weights;
}

// Trains the launch again from its logs, with records in a new folder.
std::vector<std::string> replayed(experiments::Launch launch) {
  const fs::path logs = launch.records;
  launch.records /= "replay";
  fs::remove_all(launch.records);
  fs::create_directory(launch.records);
  {
    RankRecords records(launch, 0);
    train(launch, unconnected(), 1, records, logs);
  }
  return weights_of(launch);
}

fs::path log_of(const experiments::Launch& launch, int server, std::int64_t epoch) {
  return launch.records / experiments::server_log_name(server, epoch);
}

TEST_CASE(
    "a replay of asynchronous servers gives the same parameters bit by bit, for any model and optimizer") {
  experiments::Run with_clipping = async_run(small_mlp(), 1);
  with_clipping.optimizer.clip_norm = 0.1;
  for (const experiments::Run& run :
       {async_run(small_mlp()), with_clipping, async_run(small_vgg11()), async_run(small_seq2seq())}) {
    CAPTURE(run.model);
    const ScratchFolder folder;
    const auto launch = launch_in(folder.path(), run, "");
    train_launched(launch);
    const auto weights = weights_of(launch);
    REQUIRE(weights.size() == epochs_of_small_runs);
    CHECK(weights.front() != weights.back());
    CHECK(replayed(launch) == weights);
  }
}

TEST_CASE("servers record how stale updates were, and replicas record all samples once") {
  const ScratchFolder folder;
  const auto launch = launch_in(folder.path(), async_run(small_mlp()), "");
  train_launched(launch);
  const std::int64_t updates = (130 + 11) / 12;  // batches of an epoch
  for (int server = 0; server < servers; ++server)
    for (const json& epoch : epochs_of(launch, workers + server)) {
      std::int64_t counted = 0;
      for (const auto& [stale, number] : epoch.at("staleness").items()) counted += number.get<std::int64_t>();
      CHECK(counted == updates);
      CHECK(epoch.at("metrics").empty());
    }
  double samples = 0;
  for (int worker = 0; worker < workers; ++worker) {
    const json first = epochs_of(launch, worker).front();
    for (const json& metric : first.at("metrics"))
      if (metric.at("phase") == "train" && metric.at("name") == "loss")
        samples += metric.at("weight").get<double>();
  }
  CHECK(samples == 130);
}

TEST_CASE("no replica reads parameters while it is ahead by more than the bound") {
  for (const int bound : {0, 1}) {
    const ScratchFolder folder;
    const auto launch = launch_in(folder.path(), async_run(small_mlp(), bound), "");
    train_launched(launch);
    for (const json& epoch : epochs_of(launch, workers)) {  // of server 0, which gives the updates
      for (const auto& [stale, number] : epoch.at("staleness").items())
        CHECK(std::stoi(stale) <= (workers - 1) * (2 * bound + 1));  // τ ≤ (W − 1)(2s + 1)
      std::array<int, workers> finished{};
      for (const std::int64_t number :
           experiments::read_server_log(log_of(launch, 0, epoch.at("epoch").get<std::int64_t>()))) {
        const experiments::ServerEvent event = experiments::event_of(number);
        int& own = finished.at(static_cast<std::size_t>(event.replica));
        if (event.applied)
          ++own;
        else
          CHECK(own <= std::ranges::min(finished) + bound);
      }
    }
  }
}

TEST_CASE("one replica with asynchronous servers trains what one process trains, bit by bit") {
  const ScratchFolder one, many;
  experiments::Run run = async_run(small_mlp());
  run.strategy.replicas = 1;
  const auto served = launch_in(many.path(), run, "");
  train_launched(served);
  experiments::Run alone = shaped(run, single);
  alone.strategy.mode = "sync";
  alone.data.train_samples = 130;
  const auto whole = launch_in(one.path(), alone, "");
  train_launched(whole);
  CHECK(epochs_of(served, 0).back().at("metrics") == epochs_of(whole, 0).back().at("metrics"));
}

TEST_CASE("a log of another order gives other parameters, and a damaged or impossible one is an error") {
  const ScratchFolder folder;
  const auto launch = launch_in(folder.path(), async_run(small_mlp()), "");
  train_launched(launch);
  const auto weights = weights_of(launch);
  const fs::path log = log_of(launch, 0, 1);
  auto events = experiments::read_server_log(log);
  // A gradient is applied one event earlier: before another replica has read the parameters.
  const auto read = std::ranges::adjacent_find(events, [](std::int64_t one, std::int64_t next) {
    const auto first = experiments::event_of(one), second = experiments::event_of(next);
    return !first.applied && second.applied && first.replica != second.replica;
  });
  if (read != events.end()) {
    std::iter_swap(read, read + 1);
    experiments::write_server_log(log, events);
    CHECK(replayed(launch) != weights);
  }
  experiments::write_server_log(log, {events.front()});
  CHECK_THROWS_WITH(replayed(launch), doctest::Contains("allow no next update"));
  tests::write_text(log, "0badc0de [1]\n");
  CHECK(contains(tests::user_error_of([&] { replayed(launch); }), "log of a server is missing or damaged"));
}

}  // namespace trainyard::runner::replay_test
