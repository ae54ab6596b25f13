// Canonical work and key: what the result of a run depends on, without whatever was added later and has the
// value that reproduces the old behaviour.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sha256.h"
#include "experiments/run/run.h"

namespace trainyard::experiments {

namespace {

constexpr int key_version = 1;

// The shortest decimal that reads back as `number` (std::to_chars); −0 is 0.
std::string shortest(double number) {
  if (!std::isfinite(number)) throw InternalError("a number of a run is not finite");
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number == 0 ? 0.0 : number);
  return {digits.data(), end.ptr};
}

// JSON on one line: sorted members, shortest numbers. Written without a tree of JSON between: a plan of
// 10,000 runs has 20,000 of these. Not json::dump: frozen keys do not hang on its float format.
using Members = std::map<std::string_view, std::string>;  // each with its text

std::string quoted(const std::string& text) {
  const auto plain = [](unsigned char byte) {
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
  };
  return std::ranges::all_of(text, plain) ? '"' + text + '"' : nlohmann::json(text).dump();
}

template <typename T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return shortest(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return quoted(value);
  } else {
    std::string list;
    for (const auto& element : value) list += (list.empty() ? "" : ",") + text_of(element);
    return '[' + list + ']';
  }
}

std::string object_of(const Members& members) {
  std::string text;
  for (const auto& [name, value] : members)
    text.append(text.empty() ? "{" : ",").append(quoted(std::string(name))).append(":").append(value);
  return text.empty() ? "{}" : text + '}';
}

std::string hyperparameters_work(const models::Hyperparameters& values) {
  Members work;
  for (const auto& [name, value] : values)
    work[name] = std::visit([](const auto& held) { return text_of(held); }, value);
  return object_of(work);
}

// How a batch is given is part of the work. One replica does the same either way, unless the matrix asks for
// both.
std::string batch_work(const Run& run) {
  if (run.batch_per == "global" || (run.strategy.sharing_replicas() == 1 && !run.axes.contains("batch")))
    return object_of({{"per", quoted("global")}, {"size", text_of(run.global_batch)}});
  return object_of({{"per", quoted(run.batch_per)}, {"size", text_of(run.batch_size)}});
}

bool holds_texts(const std::string& source) {
  const auto rows = models::datasets();
  return std::any_of(rows.begin(), rows.end(), [&](const models::Dataset& row) {
    return row.name == source && row.kind != models::DataKind::images;
  });
}

// Not the data set that was asked for, but the one that is read; its shape follows from it.
std::string data_work(const models::DataChoice& data) {
  Members work{{"fingerprint", text_of(data.fingerprint)},
               {"source", text_of(data.source)},
               {"split", text_of(data.split)},
               {"split_seed", text_of(data.split_seed)}};
  if (data.source == "folder") work["image_size"] = text_of(data.image_size);
  if (holds_texts(data.source)) {
    work["vocabulary_max_size"] = text_of(data.vocabulary_max_size);
    work["vocabulary_min_frequency"] = text_of(data.vocabulary_min_frequency);
  }
  if (data.train_samples) work["train_samples"] = text_of(*data.train_samples);
  return object_of(work);
}

std::string optimizer_work(const Run& run) {
  const Optimizer& optimizer = run.optimizer;
  Members work{{"kind", text_of(optimizer.kind)},
               {"learning_rate", text_of(optimizer.learning_rate)},
               {"schedule", text_of(optimizer.schedule)},
               {"weight_decay", text_of(optimizer.weight_decay)}};
  if (optimizer.kind == "sgd") work["momentum"] = text_of(optimizer.momentum);
  if (optimizer.schedule == "step") {
    work["schedule_epochs"] = text_of(optimizer.schedule_epochs);
    work["schedule_factor"] = text_of(optimizer.schedule_factor);
  }
  if (optimizer.clip_norm != 0) work["clip_norm"] = text_of(optimizer.clip_norm);
  if (effective_learning_rate(run) != optimizer.learning_rate)
    work["learning_rate_scaling"] = text_of(run.learning_rate_scaling);
  return object_of(work);
}

std::string strategy_work(const Strategy& strategy) {
  Members work{{"kind", text_of(strategy.kind)},
               {"replicas", text_of(strategy.replicas)},
               {"stages", text_of(strategy.stages)}};
  if (!strategy.boundaries.empty()) work["boundaries"] = text_of(strategy.boundaries);
  if (strategy.micro_batches != 1) work["micro_batches"] = text_of(strategy.micro_batches);
  if (!strategy.schedule.empty()) work["schedule"] = text_of(strategy.schedule);
  if (!strategy.foreign()) return object_of(work);
  // The key has argv and what the declared files hold, not what they are called or where. Files that a
  // pattern or a folder finds count with their names: a program may read them by these.
  work["command"] = text_of(strategy.command);
  std::vector<std::string> files, found;
  for (const ForeignFile& file : strategy.files)
    if (file.found)
      found.push_back(file.name + ' ' + file.sha256);
    else
      files.push_back(file.sha256);
  std::ranges::sort(files);
  std::ranges::sort(found);
  work["files"] = text_of(files);
  if (!found.empty()) work["found_files"] = text_of(found);
  std::vector<std::string> environment;
  for (const auto& [name, value] : strategy.environment) environment.push_back(name + '=' + value);
  if (!environment.empty()) work["env"] = text_of(environment);
  return object_of(work);
}

}  // namespace

std::string canonical_work(const Run& run) {
  Members work{
      {"batch", batch_work(run)},      {"data", data_work(run.data)},
      {"epochs", text_of(run.epochs)}, {"hyperparameters", hyperparameters_work(run.hyperparameters)},
      {"model", text_of(run.model)},   {"optimizer", optimizer_work(run)},
      {"seed", text_of(run.seed)},     {"strategy", strategy_work(run.strategy)}};
  if (run.gradient_accumulation != 1) work["gradient_accumulation"] = text_of(run.gradient_accumulation);
  // Of one replica nothing is padded, but where the matrix asks for both samplers each has its run.
  if (run.sampler != "exact" && (run.strategy.sharing_replicas() > 1 || run.axes.contains("sampler")))
    work["sampler"] = text_of(run.sampler);
  if (run.augmentation != "none") work["augmentation"] = text_of(run.augmentation);
  if (run.batch_norm != "local") work["batch_norm"] = text_of(run.batch_norm);
  if (run.precision != "float32") work["precision"] = text_of(run.precision);
  if (run.axes.contains("threads")) work["threads"] = run.threads ? text_of(*run.threads) : "null";
  return object_of({{"key_version", text_of(key_version)}, {"work", object_of(work)}});
}

std::string run_key(const Run& run) {
  return models::sha256_hex(canonical_work(run)).substr(0, 12);
}

}  // namespace trainyard::experiments
