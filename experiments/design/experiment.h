// A resolved experiment: its complete runs and comparisons. A plain value, independent of TOML.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/error.h"
#include "experiments/design/own_metric.h"
#include "experiments/design/reference_results.h"
#include "experiments/run/machine.h"
#include "experiments/run/run.h"
#include "models/datasets/datasets.h"
#include "models/samples/samples.h"

namespace trainyard::experiments {

// Resolved `[[compare]]` tables: what an experiment compares, and the margins. The journal stores them as
// JSON, and `reports` reads them from the database.

struct LossMargin {
  double ratio = 1.02;
  double absolute = 0.005;
};

struct Margins {
  double time = 1.05;  // a ratio
  LossMargin loss;
  double accuracy_points = 0.5;            // percentage points
  std::map<std::string, double> own = {};  // of metrics of the user, in their unit
};

// `seed = { min, max }`: a cell gets seeds until it is decided.
struct SeedRange {
  int min = 0;  // pairs at the first look
  int max = 0;
  bool operator==(const SeedRange&) const = default;
};

struct Compare {
  std::string axis = "strategy";
  std::string baseline = "single";        // text of the axis value
  std::vector<std::string> pair{"seed"};  // empty = unpaired
  Margins margins;
  double alpha = 0.05;
  std::string families = "each";        // "all": alpha is for all arms and published metrics together
  std::optional<SeedRange> seeds = {};  // empty: one look at all planned seeds
  std::vector<std::string> differs;
};

nlohmann::json to_json(const Compare& compare);
Compare compare_from_json(const nlohmann::json& json);

// Resolved [expect.MODEL] tables: metrics that each finished run of a model must reach. The journal stores
// them as JSON. They are checked at the end of a sweep and in reports.

struct Expectation {
  std::string model;               // applies to all its runs
  std::string phase;               // "train", "validation", "test"; the last epoch counts for the first two
  std::string metric;              // "loss", "accuracy", …: a row of models/metrics.h, or one of the user
  std::optional<double> at_least;  // at least one of the two is set
  std::optional<double> at_most;
  bool operator==(const Expectation&) const = default;
};

// The name in the file: "test_accuracy".
std::string metric_name(const Expectation& expectation);

// The expectation for people: "mlp: test_accuracy >= 0.9".
std::string to_text(const Expectation& expectation);

// Whether `value` meets the expectation. NaN never does.
bool holds(const Expectation& expectation, double value);

nlohmann::json to_json(const Expectation& expectation);
Expectation expectation_from_json(const nlohmann::json& json);  // InternalError if members are wrong

struct Experiment {
  std::string name;
  std::filesystem::path file;
  std::string toml;  // verbatim
  std::uint64_t data_seed = 0;
  std::map<std::string, std::string> data;  // from `[data]`: data set -> folder or "synthetic"
  Machine machine;
  std::vector<Compare> compare;              // empty if the file has none and strategies cannot be compared
  std::vector<Expectation> expect;           // checked at the end of `run`; in the order of the file
  std::vector<OwnMetric> metrics;            // of [metric.*]; their margins are in `compare`
  std::optional<Published> published;        // content of the file that `published` names
  std::vector<Run> runs;                     // in the order of matrix/expand.h
  std::vector<std::string> keys;             // run key of each run; empty before `resolve_data`
  std::vector<std::string> varied;           // names of the axes that the matrix varies
  std::vector<Location> strategy_locations;  // per run, for device errors
  std::vector<Location> thread_locations;    // per run: place of `threads`
  std::map<std::string, Location> files_locations;  // of `files`, by the name of a user's strategy
};

// Statistics of a data set. The journal stores them (`data_profiles` of a `run` entry), and `reports` reads
// them from the database.

struct ProfiledData {
  std::string dataset;   // the requested one
  std::string source;    // the one that was read
  std::string identity;  // equal for equal samples in equal parts
  models::DataProfile profile;
};

// A hash of content, split and sample limit. They decide which samples each part has.
std::string identity_of(const models::DataChoice& choice);

nlohmann::json to_json(const ProfiledData& data);
ProfiledData profiled_data_from_json(const nlohmann::json& json);  // InternalError if members are wrong

}  // namespace trainyard::experiments
