// The resolved values of runs, by name and with their own types.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "experiments/run/run.h"

namespace trainyard::db {

// SQL of the values of the run `r`, as JSON.
inline constexpr const char* axes_of_run =
    "(SELECT json_group_object(x.name, json(x.json)) FROM axis_value x WHERE x.run_key = r.run_key)";

// The values in this JSON text. "strategy" is `label`, its name in the experiment.
inline std::map<std::string, Value> axes_from(const std::string& text, const std::string& label) {
  std::map<std::string, Value> values;
  const auto by_name = nlohmann::json::parse(text);
  for (const auto& [name, value] : by_name.items()) values[name] = experiments::value_from_json(value);
  values["strategy"] = label;
  return values;
}

}  // namespace trainyard::db
