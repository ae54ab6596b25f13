// Keys that a file may write in more than one way, and the one value that each way comes to.
//   batch        128; { size = 128, per = "global" }; { size = 64, per = "replica" }, also "64 per replica"
//   stage_split  "auto"; [3, 7]
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/parameter.h"
#include "experiments/config/problems.h"
#include "experiments/config/toml_tree.h"

namespace trainyard::experiments {

struct Batch {
  std::int64_t size = 128;
  std::string per = "global";
};

// Of a value that `checked_batch` has made (`batch_value` is the way back).
Batch batch_of(const models::Value& value);

// The value of `item`, whose number `parameter` bounds; else reports what is wrong and what is allowed.
std::optional<models::Value> checked_batch(const models::Parameter& parameter, const Item& item,
                                           Problems& problems);

// "auto", or boundaries that ascend. Whether they fit the stages and layers of a run is checked with the run.
std::optional<models::Value> checked_stage_split(const models::Parameter& parameter, const Item& item,
                                                 Problems& problems);

}  // namespace trainyard::experiments
