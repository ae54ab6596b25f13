#include "tests/runner/support/launched_ranks.h"

#include <fstream>
#include <map>

#include "experiments/protocol/record.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::testing {

using nlohmann::json;

experiments::Launch launch_of(const std::filesystem::path& folder, std::int64_t replicas,
                              std::int64_t epochs) {
  experiments::Launch launch;
  launch.run = run_of("mlp", replicas);
  launch.run.data.dataset = launch.run.data.source = "synthetic-digits";
  launch.run.data.train_samples = 501;
  launch.run.epochs = epochs;
  launch.run.global_batch = 100;  // the last batch has one sample, so one of two ranks has none
  launch.run.threads = 1;
  launch.key = "0123456789ab";
  launch.attempt = 2;
  launch.records = folder;
  launch.experiment = "test";
  launch.created = experiments::utc_now();
  return launch;
}

LaunchedRanks::LaunchedRanks(const experiments::Launch& launch) {
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

std::vector<json> records_of(const experiments::Launch& launch, int rank) {
  std::vector<json> records;
  std::ifstream in(launch.records / experiments::rank_records_name(rank));
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const auto parsed = experiments::parse_line(line);
    REQUIRE(parsed.problem == "");
    records.push_back(parsed.record->body);
  }
  return records;
}

std::vector<std::string> types_of(const std::vector<json>& records) {
  std::vector<std::string> types;
  types.reserve(records.size());
  for (const json& record : records) types.push_back(record.at("type"));
  return types;
}

}  // namespace trainyard::runner::testing
