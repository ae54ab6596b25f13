// trainyard list schema: the JSON Schema of experiment files for editors, from the tables that check them. It refuses less
// than `trainyard check`: names of your own are allowed.
#include <array>
#include <iostream>

#include <nlohmann/json.hpp>

#include "experiments/config/machine_keys.h"
#include "experiments/run/keys.h"
#include "models/catalogue.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

using Json = nlohmann::ordered_json;

Json about(const std::string& meaning, const std::string& allowed, const std::string& fallback, Json schema) {
  schema["description"] = meaning + "; " + allowed + (fallback.empty() ? "" : "; default " + fallback);
  return schema;
}

Json value_of(const Parameter& parameter) {
  static constexpr std::array types{"boolean", "integer", "number", "string", "integer", "number"};
  Json one{{"type", types.at(static_cast<std::size_t>(parameter.type))}};
  if (const auto& least = parameter.minimum)
    one[least->included ? "minimum" : "exclusiveMinimum"] = least->value;
  if (const auto& most = parameter.maximum)
    one[most->included ? "maximum" : "exclusiveMaximum"] = most->value;
  if (!parameter.choices.empty()) one["enum"] = parameter.choices;
  return parameter.type < ValueType::integers ? one : Json{{"type", "array"}, {"items", one}};
}

Json table(Json keys) {
  return {{"type", "object"}, {"properties", std::move(keys)}};
}

// The keys of a run, and `more`. Sizes of networks and keys with several forms have no type. `axes`: each is a list.
Json keys_of_runs(bool of_strategies, const std::vector<std::string>& more, bool axes = false) {
  Json all = Json::object();
  for (const auto& key : experiments::keys()) {
    if (key.place == experiments::KeyPlace::strategy && !of_strategies) continue;
    const bool one_form = !axes && key.other_form.empty() && key.parameter.name != "dataset";
    all[key.parameter.name] = about(key.parameter.meaning, allowed_text(key), default_text(key.parameter),
                                    one_form ? value_of(key.parameter) : Json::object());
  }
  for (const auto& model : models::catalogue())
    for (const auto& size : model.hyperparameters)
      all[size.name] = about(size.meaning, allowed_text(size), "", Json::object());
  for (const std::string& name : more) all[name] = Json::object();
  if (axes)
    for (auto& schema : all) schema["type"] = {"array", "object"};  // seed = { count = 5 }
  return all;
}

}  // namespace

void list_schema() {
  const Json text{{"type", "string"}}, row = table(keys_of_runs(true, {"model", "strategy"}));
  Json machine;
  for (const auto& key : experiments::machine_keys())
    machine[key.name] = about(key.meaning, key.allowed, key.fallback, Json::object());
  Json schema = table({{"name", text}, {"data_seed", {{"type", "integer"}}}, {"published", text}});
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["required"] = {"name", "matrix"};
  schema["additionalProperties"] = false;
  Json& sections = schema["properties"];
  sections["matrix"] = table(keys_of_runs(true, {"model", "strategy", "zip"}, /*axes=*/true));
  sections["include"] = sections["exclude"] = {{"type", "array"}, {"items", row}};
  sections["defaults"] = table(keys_of_runs(false, {}));
  sections["model"]["additionalProperties"] =
      table(keys_of_runs(false, {"title", "task", "parameters", "export"}));
  sections["strategy"]["additionalProperties"] =
      table(keys_of_runs(true, {"kind", "command", "files", "env"}));
  (sections["machine"] = table(machine))["additionalProperties"] = false;
  for (const char* name : {"dataset", "data", "compare", "expect", "metric"}) sections[name] = Json::object();
  std::cout << schema.dump(2) << '\n';
}

}  // namespace trainyard::tools
