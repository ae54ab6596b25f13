// An experiment as it is trained: its complete runs and what is compared. A plain value, without TOML.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "experiments/design/compare.h"
#include "experiments/design/expect.h"
#include "experiments/design/published.h"
#include "experiments/run/machine.h"
#include "experiments/run/run.h"

namespace trainyard::experiments {

struct Experiment {
  std::string name;
  std::filesystem::path file;
  std::string toml;  // verbatim
  std::uint64_t data_seed = 0;
  std::map<std::string, std::string> data;  // data set -> folder or "synthetic", as `[data]` says
  Machine machine;
  std::vector<Compare> compare;     // empty where the file has none and strategies cannot be compared
  std::vector<Expectation> expect;  // what the end of `run` checks; by model and metric, in the file's order
  std::optional<Published> published;  // numbers to show beside ours; the file that `published` names
  std::vector<Run> runs;  // model, strategy, other axes as in the file, seed fastest; included rows last
  std::vector<std::string> keys;             // of each run; empty before `resolve_data`
  std::vector<std::string> varied;           // names of the axes that the matrix varies
  std::vector<Location> strategy_locations;  // of each run: where its strategy stands, for device errors
  std::vector<Location> thread_locations;    // of each run: where its `threads` stands
};

}  // namespace trainyard::experiments
