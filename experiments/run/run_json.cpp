// JSON of a run and its parts, canonical work and run key.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_members.h"
#include "base/named_row.h"
#include "base/sha256.h"
#include "experiments/run/keys.h"
#include "experiments/run/run.h"
#include "models/datasets/datasets.h"

namespace trainyard::experiments {

using nlohmann::json;

namespace {

json hyperparameters_json(const models::Hyperparameters& values) {
  json object = json::object();
  for (const auto& [name, value] : values) object[name] = to_json(value);
  return object;
}

std::map<std::string, Value> values_from_json(const json& object) {
  std::map<std::string, Value> values;
  for (const auto& [name, value] : object.items()) values.emplace(name, value_from_json(value));
  return values;
}

json input_json(const models::InputShape& input) {
  return {{"channels", input.image.channels},     {"classes", input.classes},
          {"height", input.image.height},         {"source_length", input.source_length},
          {"target_length", input.target_length}, {"target_vocabulary", input.target_vocabulary},
          {"vocabulary", input.vocabulary},       {"width", input.image.width}};
}

template <typename T>
json member_json(const T& value) {
  return value;
}
json member_json(const std::optional<std::int64_t>& value) {
  return value ? json(*value) : json(nullptr);
}

const std::string& json_name(const Key& key) {
  return key.json.empty() ? key.parameter.name : key.json;
}

// Adds the values of the keys, each to the object of its part.
void add_keys(const Run& run, json& object) {
  for (const Key& key : keys())
    with_member(key, run, [&](const auto& value) {
      const std::string part(part_name(key));
      (part.empty() ? object : object[part])[json_name(key)] = member_json(value);
    });
}

json data_json(const models::DataChoice& data) {
  json object{{"available", data.available},    {"fingerprint", data.fingerprint},
              {"folder", data.folder.string()}, {"input", input_json(data.input)},
              {"source", data.source},          {"split_seed", data.split_seed}};
  if (!data.decoded.empty()) object["decoded"] = data.decoded.string();
  return object;
}

void add_foreign(const Strategy& strategy, json& object) {
  if (!strategy.foreign()) return;
  object["command"] = strategy.command;
  object["folder"] = strategy.folder;
  object["files"] = json::array();
  for (const ForeignFile& file : strategy.files) {
    object["files"].push_back({{"name", file.name}, {"sha256", file.sha256}});
    if (file.found) object["files"].back()["found"] = true;
  }
  if (!strategy.environment.empty()) object["env"] = strategy.environment;
}

json strategy_json(const Strategy& strategy) {
  json object = {{"boundaries", strategy.boundaries},
                 {"kind", strategy.kind},
                 {"name", strategy.name},
                 {"split", strategy.split}};
  if (!strategy.tensor_split.empty()) {
    object["tensor_split"] = strategy.tensor_split;
    object["tensor_source"] = strategy.tensor_source;
  }
  add_foreign(strategy, object);
  return object;
}

// Reads a member that only some runs have. If it is missing, the value stays unchanged.
template <typename T>
void read_if_there(const json& object, const char* name, T& value) {
  if (const auto found = object.find(name); found != object.end()) read(*found, value);
}

template <typename T>
void read_member(const json& from, T& to) {
  read(from, to);
}
void read_member(const json& from, std::optional<std::int64_t>& to) {
  if (!from.is_null()) to = read_as<std::int64_t>(from);
}

void read_keys(const json& object, Run& run) {
  for (const Key& key : keys())
    with_member(key, run, [&](auto& value) {
      const std::string part(part_name(key));
      const json& from = part.empty() ? object : object.at(part);
      if (key.original || from.contains(json_name(key))) read_member(from.at(json_name(key)), value);
    });
}

models::InputShape input_from_json(const json& object) {
  models::InputShape input;
  read(object.at("channels"), input.image.channels);
  read(object.at("height"), input.image.height);
  read(object.at("width"), input.image.width);
  read(object.at("classes"), input.classes);
  read(object.at("vocabulary"), input.vocabulary);
  read(object.at("target_vocabulary"), input.target_vocabulary);
  read(object.at("source_length"), input.source_length);
  read(object.at("target_length"), input.target_length);
  return input;
}

models::DataChoice data_from_json(const json& object) {
  models::DataChoice data;
  data.available = object.value("available", std::int64_t{0});
  read(object.at("fingerprint"), data.fingerprint);
  data.folder = object.at("folder").get<std::string>();
  data.decoded = object.value("decoded", std::string());
  read(object.at("source"), data.source);
  read(object.at("split_seed"), data.split_seed);
  data.input = input_from_json(object.at("input"));
  return data;
}

Strategy strategy_from_json(const json& object) {
  Strategy strategy;
  read(object.at("kind"), strategy.kind);
  read(object.at("name"), strategy.name);
  read(object.at("boundaries"), strategy.boundaries);
  read(object.at("split"), strategy.split);
  read_if_there(object, "tensor_split", strategy.tensor_split);
  if (!strategy.tensor_split.empty()) strategy.tensor_source = strategy.split;  // of older files
  read_if_there(object, "tensor_source", strategy.tensor_source);
  read_if_there(object, "command", strategy.command);
  read_if_there(object, "folder", strategy.folder);
  if (object.contains("files"))
    for (const json& file : object.at("files"))
      strategy.files.push_back({file.at("name").get<std::string>(), file.at("sha256").get<std::string>(),
                                file.value("found", false)});
  read_if_there(object, "env", strategy.environment);
  return strategy;
}

}  // namespace

json to_json(const Value& value) {
  return std::visit([](const auto& held) { return json(held); }, value);
}

Value value_from_json(const json& value) try {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return read_as<std::int64_t>(value);
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  const auto all = [&value](auto is) { return std::all_of(value.begin(), value.end(), is); };
  if (value.is_array() && all([](const json& element) { return element.is_number_integer(); }))
    return read_as<std::vector<std::int64_t>>(value);
  if (value.is_array() && all([](const json& element) { return element.is_number(); }))
    return value.get<std::vector<double>>();
  throw InternalError("not the JSON of a value: " + value.dump());
} catch (const json::exception& error) {
  throw InternalError(std::string("not the JSON of a value: ") + error.what());
}

// Adds the declarations, if there are any. The JSON of other runs must not change.
static void add_declared(const Declaration& declared, json& object) {
  if (!declared.model_title.empty()) {
    object["declared"]["model"] = {{"title", declared.model_title}};
    if (!declared.task.empty()) object["declared"]["model"]["task"] = declared.task;
    if (!declared.loss_parts.empty()) object["declared"]["model"]["loss_parts"] = declared.loss_parts;
  }
  if (!declared.dataset_title.empty()) object["declared"]["dataset"] = {{"title", declared.dataset_title}};
}

static Declaration declared_from_json(const json& object) {
  Declaration declared;
  if (object.contains("model")) {
    read(object.at("model").at("title"), declared.model_title);
    read_if_there(object.at("model"), "task", declared.task);
    read_if_there(object.at("model"), "loss_parts", declared.loss_parts);
  }
  if (object.contains("dataset")) read(object.at("dataset").at("title"), declared.dataset_title);
  return declared;
}

json to_json(const Run& run) {
  json object = {{"axes", hyperparameters_json(run.axes)},
                 {"batch_per", run.batch_per},
                 {"batch_size", run.batch_size},
                 {"data", data_json(run.data)},
                 {"global_batch", run.global_batch},
                 {"hyperparameters", hyperparameters_json(run.hyperparameters)},
                 {"model", run.model},
                 {"strategy", strategy_json(run.strategy)}};
  add_keys(run, object);
  add_declared(run.declared, object);
  if (!run.initial_sha256.empty()) object["initial_sha256"] = run.initial_sha256;
  if (run.exported) {
    json& exported = object["exported"];
    exported = {
        {"initial", run.exported->initial}, {"path", run.exported->path}, {"sha256", run.exported->sha256}};
    if (!run.exported->weights.empty()) exported["weights"] = run.exported->weights;
  }
  return object;
}

Run run_from_json(const json& object) try {
  Run run;
  run.axes = values_from_json(object.at("axes"));
  run.data = data_from_json(object.at("data"));
  read(object.at("global_batch"), run.global_batch);
  read(object.at("batch_size"), run.batch_size);
  read(object.at("batch_per"), run.batch_per);
  run.hyperparameters = values_from_json(object.at("hyperparameters"));
  read(object.at("model"), run.model);
  run.strategy = strategy_from_json(object.at("strategy"));
  read_keys(object, run);
  read_if_there(object, "initial_sha256", run.initial_sha256);
  if (object.contains("declared")) run.declared = declared_from_json(object.at("declared"));
  if (object.contains("exported")) {
    read(object.at("exported").at("path"), run.exported.emplace().path);
    read(object.at("exported").at("sha256"), run.exported->sha256);
    read(object.at("exported").at("initial"), run.exported->initial);
    read_if_there(object.at("exported"), "weights", run.exported->weights);
  }
  return run;
} catch (const json::exception& error) {
  throw InternalError(std::string("not the JSON of a run: ") + error.what());
}

// Canonical work and run key. Members that were added later and have the value that reproduces the old
// behaviour are left out.

namespace {

constexpr int key_version = 1;

// The shortest decimal that reads back as `number` (std::to_chars). −0 becomes 0.
std::string shortest(double number) {
  if (!std::isfinite(number)) throw InternalError("a number of a run is not finite");
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number == 0 ? 0.0 : number);
  return {digits.data(), end.ptr};
}

// JSON on one line: sorted members, shortest numbers. Not json::dump: it needs a tree, which is slow for a
// plan of 10,000 runs, and frozen keys must not depend on its float format.
using Members = std::map<std::string_view, std::string>;  // JSON text by name

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
  } else if constexpr (std::is_same_v<T, std::optional<std::int64_t>>) {
    return value ? std::to_string(*value) : "null";
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

// The batch, including its notation. For one replica both notations are the same work, unless the matrix has
// the batch as an axis.
std::string batch_work(const Run& run) {
  if (run.batch_per == "global" || (run.strategy.sharing_replicas() == 1 && !run.axes.contains("batch")))
    return object_of({{"per", quoted("global")}, {"size", text_of(run.global_batch)}});
  return object_of({{"per", quoted(run.batch_per)}, {"size", text_of(run.batch_size)}});
}

// The members that the keys of one part of the run have. Each part has its own JSON object.
Members key_work(const Run& run, std::string_view part) {
  Members work;
  for (const Key& key : keys())
    if (part_name(key) == part && is_in_run_key(key, run))
      with_member(key, run, [&](const auto& value) { work[json_name(key)] = text_of(value); });
  return work;
}

// The data set that is read, not the requested one. Its shape follows from it.
std::string data_work(const Run& run) {
  Members work = key_work(run, "data");
  work["fingerprint"] = text_of(run.data.fingerprint);
  work["source"] = text_of(run.data.source);
  work["split_seed"] = text_of(run.data.split_seed);
  return object_of(work);
}

std::string optimizer_work(const Run& run) {
  Members work = key_work(run, "optimizer");
  if (effective_learning_rate(run) != run.optimizer.learning_rate)
    work["learning_rate_scaling"] = text_of(run.learning_rate_scaling);
  return object_of(work);
}

std::string strategy_work(const Run& run) {
  const Strategy& strategy = run.strategy;
  Members work = key_work(run, "strategy");
  work["kind"] = text_of(strategy.kind);
  if (!strategy.boundaries.empty()) work["boundaries"] = text_of(strategy.boundaries);
  if (!strategy.tensor_split.empty()) work["tensor_split"] = text_of(strategy.tensor_split);
  if (!strategy.foreign()) return object_of(work);
  // The run key has argv and the contents of declared files, but not their names. Files of patterns and
  // folders have their names too, because a program may depend on them.
  work["command"] = text_of(strategy.command);
  std::vector<std::string> files, found;
  for (const ForeignFile& file : strategy.files)
    if (file.found)
      found.push_back(fmt::format("{} {}", file.name, file.sha256));
    else
      files.push_back(file.sha256);
  std::ranges::sort(files);
  std::ranges::sort(found);
  work["files"] = text_of(files);
  if (!found.empty()) work["found_files"] = text_of(found);
  std::vector<std::string> environment;
  for (const auto& [name, value] : strategy.environment)
    environment.push_back(fmt::format("{}={}", name, value));
  if (!environment.empty()) work["env"] = text_of(environment);
  return object_of(work);
}

// Parts of a batch of texts are padded like the whole batch. Before, each part was padded to its own longest.
std::string exported_work(const Run& run) {
  Members work{{"initial", quoted(run.exported->initial)},
               {"sha256", quoted(run.exported->sha256)},
               {"task", quoted(run.declared.task)}};
  const models::Dataset* source = row_or_null(models::datasets(), &models::Dataset::name, run.data.source);
  const bool of_texts = source != nullptr && (source->kind == models::DataKind::texts ||
                                              source->kind == models::DataKind::text_pairs);
  if (!run.exported->weights.empty()) work["weights"] = quoted(run.exported->weights);
  if (of_texts && parts_of_batch(run) > 1) work["padded"] = quoted("step");
  return object_of(work);
}

}  // namespace

std::string canonical_work(const Run& run) {
  Members work = key_work(run, "");
  work["batch"] = batch_work(run);
  work["data"] = data_work(run);
  if (run.exported) work["exported"] = exported_work(run);
  work["hyperparameters"] = hyperparameters_work(run.hyperparameters);
  if (!run.initial_sha256.empty()) work["initial"] = quoted(run.initial_sha256);
  work["model"] = text_of(run.model);
  work["optimizer"] = optimizer_work(run);
  work["strategy"] = strategy_work(run);
  return object_of({{"key_version", text_of(key_version)}, {"work", object_of(work)}});
}

std::string run_key(const Run& run) {
  return sha256_hex(canonical_work(run)).substr(0, 12);
}

}  // namespace trainyard::experiments
