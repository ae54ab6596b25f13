// Bytes that ranks record to have sent, compared with the formulas.
#include <cstdint>
#include <map>
#include <string>

#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/launched_ranks.h"
#include "tests/runner/support/replicas.h"
#include "tests/runner/support/small_runs.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::runner::sent_bytes_test {

using namespace testing;
using nlohmann::json;
using trainyard::tests::ScratchFolder;

constexpr std::int64_t steps = 8;
constexpr std::int64_t numbers = 784 * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10;
constexpr std::int64_t parameters = 4 * numbers;  // bytes
static_assert(numbers == 109'386);

experiments::Run mlp(const Shape& shape) {
  experiments::Run run = shaped(small_mlp(), shape);
  run.hyperparameters["hidden"] = std::vector<std::int64_t>{128, 64};
  run.sampler = "exact";
  run.data.train_samples = steps * run.global_batch;
  run.epochs = 1;
  return run;
}

// Per step, by rank.
std::map<int, std::int64_t> sent(const experiments::Run& run, const std::string& to,
                                 const std::string& communicator = "auto") {
  const ScratchFolder folder;
  auto launch = launch_in(folder.path(), run, "");
  launch.circumstances.communicator = communicator;
  train_launched(launch);
  std::map<int, std::int64_t> found;
  for (int rank = 0; rank < run.strategy.world_size(); ++rank)
    for (const json& record : records_of(launch, rank)) {
      if (record.at("type") != "epoch") continue;
      const json bytes = record.value("sent_bytes", json::object());
      CHECK(bytes.size() == (bytes.contains(to) ? 1U : 0U));
      CHECK(bytes.value(to, std::int64_t{0}) % steps == 0);
      found[rank] = bytes.value(to, std::int64_t{0}) / steps;
    }
  return found;
}

TEST_CASE(
    "replicas send what a ring sends, or gradients once through shared memory, and one process nothing") {
  CHECK(sent(mlp(single), "replicas") == std::map<int, std::int64_t>{{0, 0}});
  const experiments::Run two = mlp({"ddp", 2, 1, "", 1});
  CHECK(sent(two, "replicas", "gloo") == std::map<int, std::int64_t>{{0, parameters}, {1, parameters}});
  const auto shared = sent(two, "replicas");
  CHECK(shared.at(0) + shared.at(1) == parameters);
}

TEST_CASE("replicas send each gradient once, and servers send all parameters to each replica") {
  constexpr int workers = 6, servers = 3;
  const auto even = sent(mlp({"parameter-server", workers, 1, "", 1, servers}), "servers");
  for (int worker = 0; worker < workers; ++worker) CHECK(even.at(worker) == parameters);
  for (int server = 0; server < servers; ++server) CHECK(even.at(workers + server) == 875'088);

  experiments::Run whole = mlp({"parameter-server", workers, 1, "", 1, servers});
  whole.strategy.placement = "whole";
  const auto uneven = sent(whole, "servers");
  CHECK(uneven.at(0) == parameters);
  CHECK(uneven.at(workers) == std::int64_t{4} * workers * 100'416);
  CHECK(uneven.at(workers + 1) == std::int64_t{4} * workers * 768);
  CHECK(uneven.at(workers + 2) == std::int64_t{4} * workers * 8'202);
}

TEST_CASE("stages send activations forward and their gradients back") {
  const auto found = sent(mlp(mp), "stages");
  constexpr std::int64_t header = 1024;
  CHECK(found.at(1) == std::int64_t{12} * 128 * 4 + header);  // gradients of 12 samples after the first layer
  CHECK(found.at(0) >= 12 * 128 * 4);
}

// What each rank holds.
std::map<int, json> held(const experiments::Run& run) {
  const ScratchFolder folder;
  const auto launch = launch_in(folder.path(), run, "");
  train_launched(launch);
  std::map<int, json> found;
  for (int rank = 0; rank < run.strategy.world_size(); ++rank)
    for (const json& record : records_of(launch, rank))
      if (record.at("type") == "epoch") found[rank] = record.at("held_bytes");
  return found;
}

// design/strategies, section 5: costs of a rank.
TEST_CASE(
    "each server holds its part of the parameters and of the state of the optimizer, and replicas no state") {
  for (const char* mode : {"sync", "async"}) {
    CAPTURE(mode);
    experiments::Run run = mlp({"parameter-server", 2, 1, "", 1, 3});
    run.strategy.mode = mode;
    run.optimizer.kind = "adam";
    const double whole = parameters, part = whole / 3;
    for (const auto& each : held(run)) {
      CAPTURE(each.first);
      const json& bytes = each.second;
      const bool server = each.first >= 2;
      const double own = server ? part : whole, tolerance = server ? 0.05 : 0;
      CHECK(std::abs(bytes.at("parameters").get<double>() - own) <= tolerance * own);
      CHECK(std::abs(bytes.at("gradients").get<double>() - own) <= tolerance * own);
      CHECK(std::abs(bytes.at("state").get<double>() - (server ? 2 * part : 0)) <= tolerance * 2 * part);
    }
  }
}

TEST_CASE("tensor parts hold their part of the split layers and all others") {
  experiments::Run run = mlp(single);
  run.strategy = {
      .name = "tensor", .kind = "tensor", .tensor = 2, .tensor_split = {1, 3}, .tensor_source = "given"};
  run.optimizer.kind = "adam";
  constexpr double own = 4 * (784 * 64 + 64 + 64 * 64 + 64 + 650);
  for (const auto& each : held(run)) {
    CAPTURE(each.first);
    const json& bytes = each.second;
    CHECK(bytes.at("parameters") == own);
    CHECK(bytes.at("gradients") == own);
    CHECK(std::abs(bytes.at("state").get<double>() - 2 * own) <= 0.05 * 2 * own);
  }
}

}  // namespace trainyard::runner::sent_bytes_test
