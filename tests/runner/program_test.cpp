// trainyard-runner and trainyard-store as programs.
#include <fstream>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>
#include <signal.h>

#include "experiments/launch.h"
#include "experiments/progress.h"
#include "experiments/record.h"
#include "experiments/record_writer.h"
#include "models/networks/network.h"
#include "models/networks/safetensors.h"
#include "runner/weight_keeper.h"
#include "tests/runner/child.h"
#include "tests/runner/doctest_beside_torch.h"
#include "tests/runner/replicas.h"
#include "tests/runner/scratch_folder.h"

namespace {

using namespace trainyard;
using namespace trainyard::runner;
using namespace trainyard::runner::testing;
using namespace std::chrono_literals;
using nlohmann::json;

experiments::Launch launch_of(const std::filesystem::path& folder, std::int64_t replicas,
                              std::int64_t epochs) {
  experiments::Launch launch;
  launch.run = run_of("mlp", replicas);
  launch.run.data.dataset = launch.run.data.source = "synthetic-digits";
  launch.run.data.train_samples = 501;
  launch.run.epochs = epochs;
  launch.run.global_batch = 100;  // the last batch has one sample: of two ranks one has none
  launch.run.threads = 1;
  launch.key = "0123456789ab";
  launch.attempt = 2;
  launch.records = folder;
  launch.experiment = "test";
  launch.created = experiments::utc_now();
  return launch;
}

// The ranks of a launch, with a store where there are several.
class Ranks {
 public:
  explicit Ranks(const experiments::Launch& launch) {
    experiments::write_launch(launch);
    const auto world_size = launch.run.strategy.world_size();
    std::map<std::string, std::string> environment{
        {"TRAINYARD_RUN", (launch.records / experiments::run_file_name).string()}};
    if (world_size > 1) {
      store = std::make_unique<Child>(std::vector<std::string>{TRAINYARD_STORE});
      const std::string address = store->read_line();
      environment["MASTER_ADDR"] = address.substr(0, address.find(' '));
      environment["MASTER_PORT"] = address.substr(address.find(' ') + 1);
      environment["TORCHELASTIC_USE_AGENT_STORE"] = "True";
      environment["TORCHELASTIC_RUN_ID"] = launch.key + "/" + std::to_string(launch.attempt);
      environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(world_size);
    }
    for (std::int64_t rank = 0; rank < world_size; ++rank) {
      if (world_size > 1) environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(rank);
      ranks.push_back(std::make_unique<Child>(std::vector<std::string>{TRAINYARD_RUNNER}, environment));
    }
  }
  std::unique_ptr<Child> store;
  std::vector<std::unique_ptr<Child>> ranks;
};

std::vector<json> records_of(const experiments::Launch& launch, int rank) {
  std::vector<json> records;
  std::ifstream in(launch.records / experiments::rank_records_name(rank));
  for (std::string line; std::getline(in, line);) {
    const auto parsed = experiments::parse_line(line);
    REQUIRE(parsed.problem == "");
    records.push_back(parsed.record->body);
  }
  return records;
}

double sum_of(const json& record, const std::string& phase, const std::string& name,
              const char* member = "sum") {
  for (const json& metric : record.at("metrics")) {
    if (metric.at("phase") == phase && metric.at("name") == name) return metric.at(member).get<double>();
  }
  FAIL("no metric " << phase << " " << name);
  return 0;
}

std::vector<std::string> types_of(const std::vector<json>& records) {
  std::vector<std::string> types;
  for (const json& record : records) types.push_back(record.at("type"));
  return types;
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
}

void check_epoch(const json& epoch, int number, std::int64_t train_weight) {
  CHECK(epoch.at("epoch") == number);
  CHECK(sum_of(epoch, "train", "loss", "weight") == train_weight);
  CHECK(sum_of(epoch, "train", "correct", "weight") == train_weight);
  check_times(epoch);
}

}  // namespace

TEST_CASE("one rank trains without a store or any variable but TRAINYARD_RUN, and records all of it") {
  const ScratchFolder folder;
  const experiments::Launch launch = launch_of(folder.path(), 1, 3);
  Ranks run(launch);
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
  CHECK(sum_of(records[3], "train", "loss") < sum_of(records[1], "train", "loss"));
  CHECK(sum_of(records[4], "test", "loss", "weight") == start.at("samples").at("test").get<double>());
  CHECK(records[5].at("status") == "finished");
  CHECK(records[5].at("total_seconds").get<double>() >= records[5].at("setup_seconds").get<double>());
  const auto progress = experiments::read_progress(folder.path() / experiments::rank_progress_name(0));
  REQUIRE(progress.has_value());
  CHECK(progress->phase == experiments::Phase::done);
}

TEST_CASE("two ranks record their own sums, which add up to what one rank finds") {
  const ScratchFolder alone, together;
  const experiments::Launch one = launch_of(alone.path(), 1, 2);
  const experiments::Launch two = launch_of(together.path(), 2, 2);
  Ranks single(one);
  REQUIRE(single.ranks[0]->wait(60s) == 0);
  Ranks pair(two);
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
    "of two replicas of two stages, last stages record metrics and all ranks times and their own "
    "parameters") {
  const ScratchFolder alone, together;
  const experiments::Launch one = launch_of(alone.path(), 1, 2);
  experiments::Launch four = launch_of(together.path(), 2, 2);
  four.run.strategy.kind = four.run.strategy.name = "mp-ddp";
  four.run.strategy.stages = 2;
  four.run.strategy.schedule = "1f1b";
  four.run.strategy.micro_batches = 3;
  four.run.strategy.boundaries = {2};
  Ranks single(one);
  REQUIRE(single.ranks[0]->wait(60s) == 0);
  Ranks grid(four);
  for (const auto& rank : grid.ranks) {
    const auto code = rank->wait(60s);
    if (code != 0) FAIL(rank->read_all());
  }
  const auto whole = records_of(one, 0);
  std::vector<std::vector<json>> records;
  for (int rank = 0; rank < 4; ++rank) records.push_back(records_of(four, rank));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    REQUIRE(types_of(records[rank]) == types_of(whole));
    CHECK(records[rank][0].at("replica") == rank / 2);
    CHECK(records[rank][0].at("stage") == rank % 2);
    CHECK(records[rank][1].at("metrics").empty() == (rank % 2 == 0));
    CHECK(records[rank][3].at("metrics").empty() == (rank % 2 == 0));
    check_times(records[rank][1]);
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

TEST_CASE("weights are one file with the layers of all stages: the last, or those of the best epoch") {
  const auto weights_of = [](std::int64_t epochs, const char* save) {
    const ScratchFolder folder;
    experiments::Launch launch = launch_of(folder.path(), 1, epochs);
    launch.run.save = save;
    launch.run.strategy.kind = launch.run.strategy.name = "pipeline";
    launch.run.strategy.stages = 2;
    launch.run.strategy.boundaries = {2};
    // from the second epoch on so fast that the loss grows
    launch.run.optimizer.schedule = "step";
    launch.run.optimizer.schedule_epochs = 1;
    launch.run.optimizer.schedule_factor = 1000;
    Ranks ranks(launch);
    for (const auto& rank : ranks.ranks) REQUIRE(rank->wait(60s) == 0);
    std::map<std::string, at::Tensor> weights;
    for (auto& tensor : networks::read_safetensors(folder.path() / weights_file_name)) {
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

TEST_CASE("fewer training samples than replicas is an error of every rank") {
  const ScratchFolder folder;
  experiments::Launch launch = launch_of(folder.path(), 3, 1);
  launch.run.data.train_samples = 2;
  Ranks ranks(launch);
  for (const auto& rank : ranks.ranks) {
    CHECK(rank->wait(60s) == 1);
    CHECK(rank->read_all().starts_with("error: 2 training samples are fewer than 3 replicas; "));
  }
}

TEST_CASE("when a rank is killed, its peer ends with an error within 5 seconds and records it") {
  const ScratchFolder folder;
  const experiments::Launch launch = launch_of(folder.path(), 2, 100'000);
  Ranks run(launch);
  for (int waited = 0; waited < 600 && types_of(records_of(launch, 0)).size() < 2; ++waited) {
    std::this_thread::sleep_for(50ms);
  }
  run.ranks[1]->kill(SIGKILL);
  const auto code = run.ranks[0]->wait(5s);
  REQUIRE(code == 1);
  const json end = records_of(launch, 0).back();
  CHECK(end.at("type") == "end");
  CHECK(end.at("status") == "failed");
  CHECK(end.at("error").get<std::string>().starts_with("rank 0: "));
  CHECK(run.ranks[0]->read_all().find("error: rank 0: ") != std::string::npos);
}

TEST_CASE("SIGTERM ends a rank at once with code 143") {
  const ScratchFolder folder;
  const experiments::Launch launch = launch_of(folder.path(), 1, 100'000);
  Ranks run(launch);
  for (int waited = 0; waited < 600 && types_of(records_of(launch, 0)).size() < 2; ++waited) {
    std::this_thread::sleep_for(50ms);
  }
  run.ranks[0]->kill(SIGTERM);
  CHECK(run.ranks[0]->wait(2s) == 143);
}

TEST_CASE("a run that diverges finishes: its losses are null, not an error") {
  const ScratchFolder folder;
  experiments::Launch launch = launch_of(folder.path(), 1, 1);
  launch.run.optimizer.learning_rate = 1e30;
  Ranks run(launch);
  REQUIRE(run.ranks[0]->wait(60s) == 0);
  const auto records = records_of(launch, 0);
  CHECK(records.at(1).at("metrics").at(0).at("name") == "loss");
  CHECK(records.at(1).at("metrics").at(0).at("sum").is_null());
  CHECK(records.back().at("status") == "finished");
}

TEST_CASE("what a rank cannot run is one line on stderr and an end record") {
  const ScratchFolder folder;
  experiments::Launch launch = launch_of(folder.path(), 1, 1);
  launch.run.strategy.kind = "pipelined";
  Ranks run(launch);
  REQUIRE(run.ranks[0]->wait(60s) == 1);
  CHECK(run.ranks[0]->read_all().starts_with("error: there is no strategy \"pipelined\""));
  const auto records = records_of(launch, 0);
  REQUIRE(types_of(records) == std::vector<std::string>{"end"});
  CHECK(records[0].at("error").get<std::string>().starts_with("there is no strategy \"pipelined\""));
}

TEST_CASE("wrong variables are errors that name them") {
  const auto error_with = [](const std::map<std::string, std::string>& environment) {
    Child rank({TRAINYARD_RUNNER}, environment);
    CHECK(rank.wait(20s) == 1);
    return rank.read_all();
  };
  CHECK(error_with({}).starts_with("error: TRAINYARD_RUN is not set"));
  CHECK(error_with({{"TRAINYARD_RUN", "/nowhere"}, {"WORLD_SIZE", "two"}})
            .starts_with("error: WORLD_SIZE=two is not an integer"));
  CHECK(error_with({{"TRAINYARD_RUN", "/nowhere"}, {"WORLD_SIZE", "2"}, {"RANK", "2"}})
            .starts_with("error: RANK=2 is not an integer in 0 … 1"));
  CHECK(error_with({{"TRAINYARD_RUN", "/nowhere"}, {"WORLD_SIZE", "2"}})
            .starts_with("error: WORLD_SIZE is 2 but MASTER_PORT is not set"));
}

TEST_CASE("the runner says its versions as JSON") {
  Child program({TRAINYARD_RUNNER, "--version", "--json"});
  CHECK(program.wait(20s) == 0);
  const json versions = json::parse(program.read_all());
  for (const char* name : {"trainyard", "build_type", "libtorch", "cuda", "nccl"}) {
    CHECK(versions.at(name).is_string());
  }
  Child wrong({TRAINYARD_RUNNER, "--verbose"});
  CHECK(wrong.wait(20s) == 2);
}
