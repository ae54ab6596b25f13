// What the runs of a model must reach, so that an experiment says of itself whether it has worked: the tables
// [expect.MODEL] of a file, resolved. The journal keeps them as JSON; whoever has the metrics holds each
// finished run of the model against them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trainyard::experiments {

struct Expectation {
  std::string model;   // holds for every run of it, whatever its strategy and seed
  std::string phase;   // "train", "validation", "test"; of the first two the last epoch counts
  std::string metric;  // "loss", "accuracy" (a fraction), "perplexity", "psnr" (decibels), "bleu" (0 – 100)
  std::optional<double> at_least;  // one of the two at least
  std::optional<double> at_most;
  bool operator==(const Expectation&) const = default;
};

// A metric that can be expected of a model.
struct ExpectedMetric {
  std::string name;
  bool more_is_better = false;  // a plain number in the file is the least value, else the greatest
  bool test_only = false;
  bool is_fraction = false;        // in [0, 1]
  bool is_score = false;           // in [0, 100]
  std::vector<std::string> tasks;  // of the models that have it
};
const std::vector<ExpectedMetric>& expected_metrics();

// "test_accuracy": the name in the file.
std::string metric_name(const Expectation& expectation);

// "mlp: test_accuracy >= 0.9".
std::string to_text(const Expectation& expectation);

// Is `value` what is expected? Not where it is NaN.
bool holds(const Expectation& expectation, double value);

nlohmann::json to_json(const Expectation& expectation);
Expectation expectation_from_json(const nlohmann::json& json);  // InternalError where it is none

}  // namespace trainyard::experiments
