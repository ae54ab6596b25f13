// An experiment as it is trained: its complete runs and what is compared. A plain value, without TOML.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/error.h"
#include "experiments/design/reference_results.h"
#include "experiments/run/machine.h"
#include "experiments/run/run.h"
#include "models/datasets/datasets.h"
#include "models/samples/samples.h"

namespace trainyard::experiments {

// What an experiment compares and by which margins: the `[[compare]]` tables of a file, resolved. The journal
// keeps it as JSON, `reports` reads it back from the database.

struct LossMargin {
  double ratio = 1.02;
  double absolute = 0.005;
};

struct Margins {
  double time = 1.05;  // a ratio
  LossMargin loss;
  double accuracy_points = 0.5;  // percentage points
};

struct Compare {
  std::string axis = "strategy";
  std::string baseline = "single";        // text of the axis value
  std::vector<std::string> pair{"seed"};  // empty = unpaired
  Margins margins;
  double alpha = 0.05;
  bool final_look = false;  // TOML `final`
  std::vector<std::string> differs;
};

nlohmann::json to_json(const Compare& compare);
Compare compare_from_json(const nlohmann::json& json);

// What the runs of a model must reach, so that an experiment says of itself whether it has worked: the tables
// [expect.MODEL] of a file, resolved. The journal keeps them as JSON; whoever has the metrics holds each
// finished run of the model against them.

struct Expectation {
  std::string model;               // holds for every run of it, whatever its strategy and seed
  std::string phase;               // "train", "validation", "test"; of the first two the last epoch counts
  std::string metric;              // "loss", "accuracy", …: a row of models/metrics.h
  std::optional<double> at_least;  // one of the two at least
  std::optional<double> at_most;
  bool operator==(const Expectation&) const = default;
};

// "test_accuracy": the name in the file.
std::string metric_name(const Expectation& expectation);

// "mlp: test_accuracy >= 0.9".
std::string to_text(const Expectation& expectation);

// Is `value` what is expected? Not where it is NaN.
bool holds(const Expectation& expectation, double value);

nlohmann::json to_json(const Expectation& expectation);
Expectation expectation_from_json(const nlohmann::json& json);  // InternalError where it is none

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

// What the data sets of an experiment look like, as the journal keeps it (`data_profiles` of a `run` entry)
// and `reports` reads it back from the database.

struct ProfiledData {
  std::string dataset;   // asked for
  std::string source;    // read
  std::string identity;  // equal for equal samples in equal parts
  models::DataProfile profile;
};

// Content, split and cap: what decides which samples stand in which part.
std::string identity_of(const models::DataChoice& choice);

nlohmann::json to_json(const ProfiledData& data);
ProfiledData profiled_data_from_json(const nlohmann::json& json);  // InternalError where it is none

}  // namespace trainyard::experiments
