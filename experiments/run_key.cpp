// Canonical work and key: what the result of a run depends on, made from its JSON by leaving out what it does
// not depend on, and whatever was added later and has the value that reproduces the old behaviour.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

#include "experiments/run.h"
#include "models/error.h"
#include "models/sha256.h"

namespace trainyard::experiments {

using nlohmann::json;

namespace {

constexpr int key_version = 1;

// The shortest decimal that reads back as `number` (std::to_chars); −0 is 0.
std::string shortest(double number) {
  if (!std::isfinite(number)) throw InternalError("a number of a run is not finite");
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number == 0 ? 0.0 : number);
  return {digits.data(), end.ptr};
}

// JSON on one line: sorted members, shortest numbers. Not json::dump: frozen keys do not hang on its float
// format.
std::string canonical_text(const json& value) {
  if (value.is_number_float()) return shortest(value.get<double>());
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [name, member] : value.items()) {
    if (!text.empty()) text += ',';
    if (value.is_object()) text += json(name).dump() + ':';
    text += canonical_text(member);
  }
  return value.is_object() ? '{' + text + '}' : '[' + text + ']';
}

// How a batch is given is part of the work. One replica does the same either way, unless the matrix asks for
// both.
json batch_work(const Run& run) {
  if (run.batch_per == "global" || (run.strategy.sharing_replicas() == 1 && !run.axes.contains("batch")))
    return {{"per", "global"}, {"size", run.global_batch}};
  return {{"per", run.batch_per}, {"size", run.batch_size}};
}

bool holds_texts(const std::string& source) {
  const auto rows = models::datasets();
  return std::any_of(rows.begin(), rows.end(), [&](const models::Dataset& row) {
    return row.name == source && row.kind != models::DataKind::images;
  });
}

json data_work(const Run& run, json data) {
  data.erase("dataset");  // what was asked for; `source` is what is read
  data.erase("folder");
  data.erase("input");  // follows from the data
  if (run.data.source != "folder") data.erase("image_size");
  if (!holds_texts(run.data.source)) {
    data.erase("vocabulary_max_size");
    data.erase("vocabulary_min_frequency");
  }
  if (!run.data.train_samples) data.erase("train_samples");
  return data;
}

json optimizer_work(const Run& run, json optimizer) {
  if (run.optimizer.kind != "sgd") optimizer.erase("momentum");
  if (run.optimizer.schedule != "step") {
    optimizer.erase("schedule_epochs");
    optimizer.erase("schedule_factor");
  }
  if (run.optimizer.clip_norm == 0) optimizer.erase("clip_norm");
  if (effective_learning_rate(run) != run.optimizer.learning_rate)
    optimizer["learning_rate_scaling"] = run.learning_rate_scaling;
  return optimizer;
}

json strategy_work(const Strategy& strategy, json work) {
  work.erase("name");
  work.erase("split");
  if (strategy.boundaries.empty()) work.erase("boundaries");
  if (strategy.micro_batches == 1) work.erase("micro_batches");
  if (strategy.schedule.empty()) work.erase("schedule");
  if (!strategy.command
           .empty()) {  // argv and what the declared files hold, not what they are called or where
    work.erase("folder");
    work["files"] = json::array();
    for (const ForeignFile& file : strategy.files) work["files"].push_back(file.sha256);
    std::sort(work["files"].begin(), work["files"].end());
  }
  return work;
}

}  // namespace

std::string canonical_work(const Run& run) {
  const json whole = to_json(run);
  json work = {{"batch", batch_work(run)}, {"data", data_work(run, whole.at("data"))},
               {"epochs", run.epochs},     {"hyperparameters", whole.at("hyperparameters")},
               {"model", run.model},       {"optimizer", optimizer_work(run, whole.at("optimizer"))},
               {"seed", run.seed},         {"strategy", strategy_work(run.strategy, whole.at("strategy"))}};
  if (run.gradient_accumulation != 1) work["gradient_accumulation"] = run.gradient_accumulation;
  // Of one replica nothing is padded, but where the matrix asks for both samplers each has its run.
  if (run.sampler != "exact" && (run.strategy.sharing_replicas() > 1 || run.axes.contains("sampler")))
    work["sampler"] = run.sampler;
  if (run.augmentation != "none") work["augmentation"] = run.augmentation;
  if (run.batch_norm != "local") work["batch_norm"] = run.batch_norm;
  if (run.precision != "float32") work["precision"] = run.precision;
  if (run.axes.contains("threads")) work["threads"] = whole.at("threads");
  return canonical_text({{"key_version", key_version}, {"work", std::move(work)}});
}

std::string run_key(const Run& run) {
  return models::sha256_hex(canonical_work(run)).substr(0, 12);
}

}  // namespace trainyard::experiments
