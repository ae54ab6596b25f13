// Runs of trainyard-runner as programs, and what they recorded.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/protocol/launch.h"
#include "tests/runner/support/child.h"

namespace trainyard::runner::testing {

// An MLP on 501 generated digits; its spool is `folder`.
experiments::Launch launch_of(const std::filesystem::path& folder, std::int64_t replicas,
                              std::int64_t epochs);

// The ranks of a launch, with a store where there are several.
struct LaunchedRanks {
  explicit LaunchedRanks(const experiments::Launch& launch);

  std::unique_ptr<Child> store;
  std::vector<std::unique_ptr<Child>> ranks;
};

// The records that a rank has written so far, of which the last may not be whole yet; fails the test where
// one is damaged.
std::vector<nlohmann::json> records_of(const experiments::Launch& launch, int rank);
std::vector<std::string> types_of(const std::vector<nlohmann::json>& records);

}  // namespace trainyard::runner::testing
