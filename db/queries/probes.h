// What the parity gate found (runner/parity/parity_gate.h): for reports, which make the verdict BROKEN of it,
// and for the plan, which does not probe again what was probed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "db/database/database.h"

namespace trainyard::db {

// What one rank had after a step.
struct Probe {
  std::string run_key;
  std::int64_t rank = 0;
  // {step, loss, reference_loss, gradient_norm, layers: [{path, gradient_norm, difference, parameter_hash}]},
  // layers in their order; null where there is none, or what was recorded is not a number. See
  // experiments/protocol/record.h.
  nlohmann::json body;
};

// Of each run its latest whole ones: those of an attempt that has them of every rank and did not fail. An
// attempt that goes on where another was interrupted relies on what that one found. In the order of runs,
// steps and ranks: what differs first comes first.
std::vector<Probe> probes(const Database& database, const std::string& experiment);

// Runs that have whole probes, each with the hash of the circumstances of every such attempt.
std::set<std::pair<std::string, std::string>> probed_runs(const Database& database);

}  // namespace trainyard::db
