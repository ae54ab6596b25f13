// The experiment file of a ladder: a copy of a file whose strategies are the steps (docs/explain.md).
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

// Models, data, machine and other keys are those of `toml`. UserError if its matrix varies a value that a step changes.
std::string ladder_file(const std::string& toml, const Ladder& ladder, const LadderFile& made);

}  // namespace trainyard::experiments
