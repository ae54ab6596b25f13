// trainyard-runner as a process: records and weights of its ranks.
#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <utility>

#include "base/sha256.h"
#include "experiments/protocol/progress.h"
#include "experiments/protocol/record.h"
#include "models/networks/network.h"
#include "models/networks/safetensors.h"
#include "runner/data/sampler.h"
#include "runner/training/checkpoints.h"
#include "tests/models/networks/catalogue_network.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/launched_ranks.h"
#include "tests/runner/support/replicas.h"
#include "tests/support/scratch_folder.h"

namespace {

using namespace trainyard;
using namespace trainyard::runner;
using namespace trainyard::runner::testing;
using namespace std::chrono_literals;
using nlohmann::json;
using trainyard::tests::read_text;
using trainyard::tests::ScratchFolder;

double sum_of(const json& record, const std::string& phase, const std::string& name,
              const char* member = "sum") {
  for (const json& metric : record.at("metrics")) {
    if (metric.at("phase") == phase && metric.at("name") == name) return metric.at(member).get<double>();
  }
  FAIL("no metric " << phase << " " << name);
  return 0;
}

void check_times(const json& epoch) {
  CHECK(epoch.at("validation_seconds").get<double>() > 0);
  double parts = 0;
  for (const char* part :
       {"data", "forward", "backward", "exposed_communication", "bubble", "optimizer", "other"}) {
    CHECK(epoch.at("seconds").at(part).get<double>() >= 0);
    parts += epoch.at("seconds").at(part).get<double>();
  }
  CHECK(parts == doctest::Approx(epoch.at("train_seconds").get<double>()));
  CHECK(epoch.at("steps") == 6);
}

// A thread is on its core for no longer than the elapsed time.
void check_seconds_on_core(const json& epoch) {
  constexpr double clocks_differ = 1e-3;
  const json& on_core = epoch.at("core_seconds");
  for (const char* part : {"forward", "backward", "exposed_communication", "optimizer"}) {
    CHECK(on_core.at(part).get<double>() > 0);
    CHECK(on_core.at(part).get<double>() < epoch.at("seconds").at(part).get<double>() + clocks_differ);
  }
  CHECK(epoch.at("transfer_seconds").get<double>() > 0);
  CHECK(epoch.at("transfer_seconds").get<double>() <=
        epoch.at("seconds").at("exposed_communication").get<double>());
  CHECK(on_core.at("transfer").get<double>() > 0);
  CHECK(on_core.at("transfer").get<double>() <= on_core.at("exposed_communication").get<double>());
}

// Only shared memory measures how long a rank waits for the slowest rank.
void check_straggler_seconds(const json& epoch, bool shared_memory) {
  CHECK(epoch.contains("straggler_seconds") == shared_memory);
  const double seconds = epoch.value("straggler_seconds", 0.0);
  CHECK(seconds >= 0);
  CHECK(seconds <= epoch.at("seconds").at("exposed_communication").get<double>());
}

// Removes the record of a timeline and returns it.
json take_step(std::vector<json>& records) {
  const auto found = std::ranges::find_if(records, [](const json& one) { return one.at("type") == "step"; });
  REQUIRE(found != records.end());
  json step = std::move(*found);
  records.erase(found);
  return step;
}

// Begin and end of a part of a micro-batch in one rank's step.
std::pair<double, double> time_of(const json& step, const std::string& part, int micro_batch) {
  for (const json& event : step.at("events"))
    if (event.at("part") == part && event.value("micro_batch", -1) == micro_batch)
      return {event.at("begin").get<double>(), event.at("end").get<double>()};
  FAIL("no " << part << " of micro-batch " << micro_batch);
  return {};
}

// The events of a rank do not overlap. Their times by part are at most those of the epoch.
void check_step(const json& step, const json& epoch, int micro_batches) {
  constexpr double rounding = 1e-9;
  CHECK(step.at("epoch") == epoch.at("epoch"));
  CHECK(step.at("step").get<int>() == epoch.at("steps").get<int>() - 1);
  std::map<std::string, double> seconds;
  double last = 0;
  for (const json& event : step.at("events")) {
    CHECK(event.at("begin").get<double>() >= last - rounding);
    last = event.at("end").get<double>();
    seconds[event.at("part")] += last - event.at("begin").get<double>();
  }
  double sum = 0;
  for (const auto& [part, of_step] : seconds) {
    CHECK(of_step <=
          (part == "transfer" ? epoch.at("transfer_seconds") : epoch.at("seconds").at(part)).get<double>() +
              rounding);
    sum += of_step;
  }
  CHECK(sum <= epoch.at("train_seconds").get<double>());
  CHECK(seconds.contains("optimizer"));
  for (int m = 0; m < micro_batches; ++m)
    CHECK(time_of(step, "forward", m).second <= time_of(step, "backward", m).first + rounding);
}

void check_epoch(const json& epoch, int number, std::int64_t train_weight) {
  CHECK(epoch.at("epoch") == number);
  CHECK(sum_of(epoch, "train", "loss", "weight") == train_weight);
  CHECK(sum_of(epoch, "train", "correct", "weight") == train_weight);
  check_times(epoch);
}

}  // namespace

TEST_CASE("one rank trains without a store, needs only TRAINYARD_RUN, and records everything") {
  const ScratchFolder folder;
  const experiments::Launch launch = launch_of(folder.path(), 1, 3);
  LaunchedRanks run(launch);
  const auto code = run.ranks[0]->wait(60s);
  CAPTURE(run.ranks[0]->read_all());
  REQUIRE(code == 0);
  const auto records = records_of(launch, 0);
  REQUIRE(types_of(records) == std::vector<std::string>{"start", "epoch", "epoch", "epoch", "test", "end"});
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(records[i].at("v") == 1);
    CHECK(records[i].at("seq") == i);
    CHECK(records[i].at("run") == launch.key);
    CHECK(records[i].at("attempt") == 2);
    CHECK(records[i].at("rank") == 0);
  }
  const json& start = records[0];
  CHECK(start.at("parameters") == 222'360);
  CHECK(start.at("samples").at("train") == 501);
  CHECK(start.at("threads") == 1);
  CHECK(start.at("world_size") == 1);
  CHECK(start.at("device").get<std::string>().starts_with("cpu:"));
  CHECK(start.at("versions").at("libtorch").get<std::string>().starts_with("2."));
  for (int epoch = 1; epoch <= 3; ++epoch) check_epoch(records[static_cast<std::size_t>(epoch)], epoch, 501);
  for (const int epoch : {1, 2, 3}) {  // another permutation of 501 samples in each epoch
    const at::Tensor order = epoch_order(501, launch.run.seed, epoch);
    const std::string_view bytes(static_cast<const char*>(order.const_data_ptr()), order.nbytes());
    CHECK(records[static_cast<std::size_t>(epoch)].at("batches").get<std::string>().starts_with(
        sha256_hex(bytes) + " steps:"));
  }
  CHECK(sum_of(records[3], "train", "loss") < sum_of(records[1], "train", "loss"));
  CHECK(sum_of(records[4], "test", "loss", "weight") == start.at("samples").at("test").get<double>());
  CHECK(records[5].at("status") == "finished");
  CHECK(!records[1].contains("core_seconds"));  // no other rank shares its core
  CHECK(records[5].at("total_seconds").get<double>() >= records[5].at("setup_seconds").get<double>());
  const auto progress = experiments::read_progress(folder.path() / experiments::rank_progress_name(0));
  REQUIRE(progress.has_value());
  CHECK(progress->phase == experiments::Phase::done);
}

TEST_CASE("ranks use the requested communicator, and train the same with each") {
  std::vector<double> losses;
  struct Case {
    const char *asked, *transport;
  };
  for (const Case& each : {Case{"auto", "shared memory"}, Case{"gloo", "gloo"}, Case{"carrier pigeon", ""}}) {
    const auto& [asked, transport] = each;
    CAPTURE(each.asked);
    const ScratchFolder folder;
    experiments::Launch launch = launch_of(folder.path(), 2, 2);
    launch.circumstances.communicator = asked;
    LaunchedRanks pair(launch);
    const bool known = *transport != '\0';
    for (const auto& rank : pair.ranks) REQUIRE(rank->wait(60s) == (known ? 0 : 1));
    const auto records = records_of(launch, 0);
    if (known) {
      CHECK(records[0].at("transport") == transport);
      check_straggler_seconds(records[1], asked == std::string("auto"));
      losses.push_back(sum_of(records[2], "train", "loss"));
    } else {
      CHECK(records.back().at("error").get<std::string>().find("carrier pigeon") != std::string::npos);
    }
  }
  CHECK(losses[0] == doctest::Approx(losses[1]).epsilon(1e-5));
}

TEST_CASE("two ranks record their own sums, which add up to those of one rank") {
  const ScratchFolder alone, together;
  const experiments::Launch one = launch_of(alone.path(), 1, 2);
  const experiments::Launch two = launch_of(together.path(), 2, 2);
  LaunchedRanks single(one);
  REQUIRE(single.ranks[0]->wait(60s) == 0);
  LaunchedRanks pair(two);
  for (const auto& rank : pair.ranks) REQUIRE(rank->wait(60s) == 0);
  const auto whole = records_of(one, 0);
  const std::array halves{records_of(two, 0), records_of(two, 1)};
  for (int rank = 0; rank < 2; ++rank) {
    const auto& records = halves[static_cast<std::size_t>(rank)];
    REQUIRE(types_of(records) == std::vector<std::string>{"start", "epoch", "epoch", "test", "end"});
    CHECK(records[0].at("world_size") == 2);
    CHECK(records[0].at("replica") == rank);
    CHECK(records[0].at("stage") == 0);
    CHECK(records[0].at("samples") == whole[0].at("samples"));
    check_epoch(records[1], 1, rank == 0 ? 251 : 250);
  }
  const auto both = [&](std::size_t record, const char* phase, const char* name, const char* member) {
    return sum_of(halves[0][record], phase, name, member) + sum_of(halves[1][record], phase, name, member);
  };
  for (const char* phase : {"train", "validation"}) {
    CHECK(both(1, phase, "loss", "weight") == sum_of(whole[1], phase, "loss", "weight"));
    CHECK(both(1, phase, "loss", "sum") == doctest::Approx(sum_of(whole[1], phase, "loss")).epsilon(1e-4));
  }
  CHECK(both(3, "test", "loss", "weight") == sum_of(whole[3], "test", "loss", "weight"));
}

TEST_CASE(
    "in a mesh of two replicas and two stages, last stages record metrics, and all ranks record times") {
  const ScratchFolder alone, together;
  const experiments::Launch one = launch_of(alone.path(), 1, 2);
  experiments::Launch four = launch_of(together.path(), 2, 2);
  four.run.strategy.kind = four.run.strategy.name = "mp-ddp";
  four.run.strategy.stages = 2;
  four.run.strategy.schedule = "1f1b";
  four.run.strategy.micro_batches = 3;
  four.run.strategy.boundaries = {2};
  four.devices_shared = true;
  LaunchedRanks single(one);
  REQUIRE(single.ranks[0]->wait(60s) == 0);
  LaunchedRanks grid(four);
  for (const auto& rank : grid.ranks) {
    const auto code = rank->wait(60s);
    if (code != 0) FAIL(rank->read_all());
  }
  const auto whole = records_of(one, 0);
  std::vector<std::vector<json>> records;
  records.reserve(4);
  std::vector<json> steps;
  for (int rank = 0; rank < 4; ++rank) {
    records.push_back(records_of(four, rank));
    steps.push_back(take_step(records.back()));
    check_step(steps.back(), records.back()[2], 3);
  }
  for (const std::size_t first : {0, 2})  // the ranks of a host have the same clock
    for (int m = 0; m < 3; ++m) {
      CHECK(time_of(steps[first], "forward", m).second <= time_of(steps[first + 1], "forward", m).first);
      CHECK(time_of(steps[first + 1], "backward", m).second <= time_of(steps[first], "backward", m).first);
    }
  for (std::size_t rank = 0; rank < 4; ++rank) {
    REQUIRE(types_of(records[rank]) == types_of(whole));
    CHECK(records[rank][0].at("replica") == rank / 2);
    CHECK(records[rank][0].at("stage") == rank % 2);
    CHECK(records[rank][1].at("metrics").empty() == (rank % 2 == 0));
    CHECK(records[rank][3].at("metrics").empty() == (rank % 2 == 0));
    check_times(records[rank][1]);
    check_seconds_on_core(records[rank][1]);
  }
  for (const std::size_t replica : {0, 1}) {
    CHECK(records[2 * replica][0].at("parameters").get<int>() +
              records[2 * replica + 1][0].at("parameters").get<int>() ==
          whole[0].at("parameters"));
  }
  for (const std::size_t epoch : {1, 2}) {
    for (const char* phase : {"train", "validation"}) {
      const auto both = [&](const char* member) {
        return sum_of(records[1][epoch], phase, "loss", member) +
               sum_of(records[3][epoch], phase, "loss", member);
      };
      CHECK(both("weight") == sum_of(whole[epoch], phase, "loss", "weight"));
      CHECK(both("sum") == doctest::Approx(sum_of(whole[epoch], phase, "loss")).epsilon(1e-4));
    }
  }
}

TEST_CASE("weights are one file with the layers of all stages, either the last or the best epoch's") {
  const auto weights_of = [](std::int64_t epochs, const char* save) {
    const ScratchFolder folder;
    experiments::Launch launch = launch_of(folder.path(), 1, epochs);
    launch.run.save = save;
    launch.run.strategy.kind = launch.run.strategy.name = "pipeline";
    launch.run.strategy.stages = 2;
    launch.run.strategy.boundaries = {2};
    // The learning rate makes the loss grow from the second epoch on.
    launch.run.optimizer.schedule = "step";
    launch.run.optimizer.schedule_epochs = 1;
    launch.run.optimizer.schedule_factor = 1000;
    LaunchedRanks ranks(launch);
    for (const auto& rank : ranks.ranks) REQUIRE(rank->wait(60s) == 0);
    std::map<std::string, at::Tensor> weights;
    for (auto& tensor :
         networks::parse_safetensors(read_text(folder.path() / weights_file_name), "weights")) {
      weights[tensor.name] = tensor.value;
    }
    return weights;
  };
  const auto first = weights_of(1, "last");
  const auto last = weights_of(2, "last");
  const auto best = weights_of(2, "best");
  const auto untrained =
      networks::build_network("mlp", run_of("mlp", 1).hyperparameters, {{1, 28, 28}, 10}, 0).parameters();
  for (const auto* weights : {&first, &last, &best}) REQUIRE(weights->size() == untrained.size());
  for (const auto& parameter : untrained) {
    CAPTURE(parameter.name);
    CHECK(first.at(parameter.name).sizes() == parameter.value.sizes());
    CHECK(!at::equal(first.at(parameter.name), parameter.value));
    CHECK(at::equal(best.at(parameter.name), first.at(parameter.name)));
    CHECK(!at::equal(last.at(parameter.name), first.at(parameter.name)));
  }
}

TEST_CASE("a run that diverges finishes: its losses are null, and there is no error") {
  const ScratchFolder folder;
  experiments::Launch launch = launch_of(folder.path(), 1, 1);
  launch.run.optimizer.learning_rate = 1e30;
  LaunchedRanks run(launch);
  REQUIRE(run.ranks[0]->wait(60s) == 0);
  const auto records = records_of(launch, 0);
  CHECK(records.at(1).at("metrics").at(0).at("name") == "loss");
  CHECK(records.at(1).at("metrics").at(0).at("sum").is_null());
  CHECK(records.back().at("status") == "finished");
}

TEST_CASE("the runner prints its versions as JSON") {
  Child program({TRAINYARD_RUNNER, "--version", "--json"});
  CHECK(program.wait(60s) == 0);
  const json versions = json::parse(program.read_all());
  for (const char* name : {"trainyard", "build_type", "libtorch", "cuda", "nccl"}) {
    CHECK(versions.at(name).is_string());
  }
  REQUIRE(versions.at("gpus").is_array());
  for (const json& gpu : versions.at("gpus")) CHECK(gpu.at("memory_bytes") > 0);
  if (versions.at("cuda").get<std::string>().empty()) CHECK(versions.at("gpus").empty());
  Child wrong({TRAINYARD_RUNNER, "--verbose"});
  CHECK(wrong.wait(60s) == 2);
}
