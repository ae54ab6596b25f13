#include "experiments/run/run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/plain_file.h"
#include "base/sha256.h"
#include "experiments/run/keys.h"

namespace trainyard::experiments {

bool Strategy::independent() const {
  return is_independent(kind);
}

std::string changed_file(const Strategy& strategy) {
  constexpr const char* advice =
      "the run key stands for the earlier file; do not change it during the sweep, and run the command again";
  for (const ForeignFile& file : strategy.files) {
    if (file.place.empty()) continue;  // the run was read from JSON
    PlainFileReader in(file.place);
    if (!in) return fmt::format("{} cannot be read any more: {}; {}", file.name, in.problem(), advice);
    if (sha256_hex(in) != file.sha256)
      return fmt::format("{} has changed since the sweep began; {}", file.name, advice);
  }
  return "";
}

NamedSplit named_split(const std::string& tensor_source) {
  NamedSplit split;
  std::istringstream text(tensor_source);
  std::string name, equals;
  char comma = 0;
  while (text >> name >> equals >> split.parts) {
    split.dimensions.push_back(name);
    text >> comma;
  }
  return split;
}

double effective_learning_rate(const Run& run) {
  const double growth = static_cast<double>(run.global_batch) / static_cast<double>(run.batch_size);
  if (run.learning_rate_scaling == "linear") return run.optimizer.learning_rate * growth;
  if (run.learning_rate_scaling == "sqrt") return run.optimizer.learning_rate * std::sqrt(growth);
  return run.optimizer.learning_rate;
}

std::int64_t parts_of_batch(const Run& run) {
  return run.strategy.sharing_replicas() * run.strategy.micro_batches * run.gradient_accumulation;
}

Value batch_value(std::int64_t size, const std::string& per) {
  if (per == "global") return size;
  return fmt::format("{} per {}", size, per);
}

namespace {

// Values of every run in addition to its keys.
constexpr std::array more_values{"model", "strategy", "global_batch", "boundaries"};

void add_batch(const Run& run, std::map<std::string, Value>& values) {
  values["batch"] =
      run.batch_per == "global" ? Value(run.global_batch) : batch_value(run.batch_size, run.batch_per);
  values["global_batch"] = run.global_batch;
}

void add_split(const Strategy& strategy, std::map<std::string, Value>& values) {
  if (strategy.tensor > 1)
    values["tensor_split"] =
        strategy.tensor_source == "given" ? Value(strategy.tensor_split) : Value(strategy.tensor_source);
  if (strategy.stages <= 1) return;
  values["stage_split"] = strategy.split == "auto" ? Value(strategy.split) : Value(strategy.boundaries);
  if (!strategy.boundaries.empty()) values["boundaries"] = strategy.boundaries;
}

}  // namespace

std::map<std::string, Value> values_by_name(const Run& run) {
  std::map<std::string, Value> values = run.hyperparameters;
  values["model"] = run.model;
  values["strategy"] = run.strategy.name;
  add_batch(run, values);
  add_split(run.strategy, values);
  for (const Key& key : keys()) {
    if (!key.is_work || (key.has != nullptr && !key.has(run))) continue;
    if (auto value = value_of(key, run)) values[key.parameter.name] = std::move(*value);
  }
  return values;
}

bool is_run_value(std::string_view name) {
  return std::ranges::find(more_values, name) != more_values.end() ||
         std::ranges::any_of(keys(),
                             [&](const Key& key) { return key.is_work && key.parameter.name == name; });
}

std::string plain_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : trainyard::to_text(value);
}

std::string label(const Run& run) {
  std::string text = fmt::format("{} {} seed {}", run.model, run.strategy.name, run.seed);
  for (const auto& [name, value] : run.axes) {
    if (name == "model" || name == "strategy" || name == "seed") continue;
    text += fmt::format(" {}={}", name, plain_text(value));
  }
  return text;
}

}  // namespace trainyard::experiments
