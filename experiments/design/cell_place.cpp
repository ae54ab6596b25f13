#include "experiments/design/cell_place.h"

#include <algorithm>

#include <fmt/format.h>

#include "experiments/run/strategies.h"

namespace trainyard::experiments {

namespace {

bool makes_cells(const std::string& name, const Compare& compare) {
  return name != "model" && name != "seed" && name != compare.axis &&
         std::ranges::find(compare.pair, name) == compare.pair.end();
}

std::string pair_text(const ValueText& value, const std::vector<std::string>& names) {
  if (names.size() == 1) return value(names.front());
  std::string text;
  for (const std::string& name : names)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value(name));
  return text;
}

}  // namespace

std::string value_text(const std::map<std::string, Value>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : plain_text(found->second);
}

ValueText text_in(const std::map<std::string, Value>& values) {
  return [&values](const std::string& name) { return value_text(values, name); };
}

CellPlace cell_place(const ValueText& value, const Compare& compare, const std::vector<std::string>& varied) {
  CellPlace place;
  if (compare.axis != "model" && std::ranges::find(compare.pair, "model") == compare.pair.end())
    place.model = value("model");
  for (const std::string& name : varied)
    if (makes_cells(name, compare)) place.further.emplace_back(name, value(name));
  place.pair = pair_text(value, compare.pair);
  place.arm = value(compare.axis);
  return place;
}

CellPlace cell_place(const Run& run, const Compare& compare) {
  std::map<std::string, Value> values = run.axes;
  values["model"] = run.model;
  values["strategy"] = run.strategy.name;
  values["seed"] = static_cast<std::int64_t>(run.seed);
  std::vector<std::string> names;
  for (const auto& [name, value] : run.axes) names.push_back(name);
  return cell_place(text_in(values), compare, names);
}

std::string further_text(const CellPlace& place) {
  std::string text;
  for (const auto& [name, value] : place.further)
    if (!value.empty()) text.append(text.empty() ? "" : ", ").append(name).append(" ").append(value);
  return text;
}

bool is_limit(const Compare& compare, std::string_view strategy_kind, const std::string& arm) {
  return compare.axis == "strategy" && is_independent(strategy_kind) && arm != compare.baseline;
}

}  // namespace trainyard::experiments
