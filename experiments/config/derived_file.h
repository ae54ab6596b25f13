// Experiment files that `trainyard explain` makes from another one (docs/explain.md).
#pragma once

#include <cstdint>
#include <string>

#include "experiments/design/ladder.h"

namespace trainyard::experiments {

struct LadderFile {
  std::string name;   // of the experiment
  std::string model;  // that it trains
  std::int64_t seeds = 0;
};

// A copy of `toml` whose strategies are the steps of the ladder. Models, data, machine and other keys stay. UserError if its
// matrix varies a value that a step changes.
std::string ladder_file(const std::string& toml, const Ladder& ladder, const LadderFile& made);

// A copy of `toml` with one run of both strategies. Environment variables tell the recorder to probe. UserError if the matrix
// has a zip.
std::string probe_file(const std::string& toml, const Probe& probe);

}  // namespace trainyard::experiments
