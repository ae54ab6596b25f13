// Runs of trainyard-runner as processes, and their records.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/protocol/launch.h"
#include "tests/runner/support/child.h"

namespace trainyard::runner::testing {

// A launch of an MLP on 501 generated digits. Its records are in `folder`.
experiments::Launch launch_of(const std::filesystem::path& folder, std::int64_t replicas,
                              std::int64_t epochs);

// The ranks of a launch. If there are several, they have a store.
struct LaunchedRanks {
  explicit LaunchedRanks(const experiments::Launch& launch);

  std::unique_ptr<Child> store;
  std::vector<std::unique_ptr<Child>> ranks;
};

// The records of a rank so far, without an incomplete last one. Fails the test if a record is damaged.
std::vector<nlohmann::json> records_of(const experiments::Launch& launch, int rank);
std::vector<std::string> types_of(const std::vector<nlohmann::json>& records);

}  // namespace trainyard::runner::testing
