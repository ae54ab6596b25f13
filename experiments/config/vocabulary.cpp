#include "experiments/config/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/named_row.h"
#include "base/nearest_name.h"
#include "base/printable.h"
#include "experiments/config/key_forms.h"
#include "experiments/run/run.h"

namespace trainyard::experiments {

using models::Parameter;
using models::Value;

namespace {

Parameter choice(const char* name, std::vector<std::string> choices) {
  Parameter parameter;
  parameter.name = name;
  parameter.type = models::ValueType::text;
  parameter.choices = std::move(choices);
  return parameter;
}

std::optional<std::string> split_problem(const Value& value) {
  const auto& fractions = std::get<std::vector<double>>(value);
  const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  if (std::abs(sum - 1) <= 1e-9) return std::nullopt;
  return "data_split must sum to 1, sums to " + models::to_text(Value(std::round(sum * 1e9) / 1e9));
}

std::string near_choice(const Parameter& parameter, const Item& item) {
  const std::string* text = item.text();
  const std::string near = text == nullptr ? "" : models::nearest_name(*text, parameter.choices);
  return near.empty() ? "" : "; did you mean " + in_quotes(near) + "?";
}

// Models may have different parameters of one name: what suits none is held against that of a model meant.
std::optional<Value> suits_a_model(const std::string& name, const Item& item, const Declared& declared,
                                   Problems& problems, const std::vector<std::string>& meant) {
  const Parameter* nearest = nullptr;
  bool of_meant = false;
  const auto raw = as_value(item);
  std::vector<const models::Model*> all;
  for (const models::Model& model : models::catalogue()) all.push_back(&model);
  for (const models::Model& model : declared.models) all.push_back(&model);
  for (const models::Model* each : all) {
    const models::Model& model = *each;
    const Parameter* parameter = hyperparameter(model, name);
    if (parameter == nullptr) continue;
    if (raw && !models::problem_with(*parameter, *raw)) return models::coerced(*parameter, *raw);
    const bool is_meant = std::find(meant.begin(), meant.end(), model.name) != meant.end();
    if (nearest == nullptr || (is_meant && !of_meant)) nearest = parameter;
    of_meant = of_meant || is_meant;
  }
  return nearest == nullptr ? std::nullopt : checked_value(*nearest, item, problems);
}

}  // namespace

const Parameter* run_parameter(std::string_view name) {
  static const Parameter model = choice("model", models::model_names());
  static const Parameter strategy = choice("strategy", {});  // which there are says the file
  if (name == "model") return &model;
  if (name == "strategy") return &strategy;
  for (const Key& key : keys())
    if (key.parameter.name == name) return &key.parameter;
  return nullptr;
}

const Parameter* hyperparameter(const models::Model& model, std::string_view name) {
  return models::row_or_null(model.hyperparameters, &Parameter::name, name);
}

const StrategyKind* strategy_or_null(std::string_view name) {
  return models::row_or_null(strategy_kinds(), &StrategyKind::name, name);
}

bool is_hyperparameter(std::string_view name, const Declared& declared) {
  const auto has_it = [&](const models::Model& model) { return hyperparameter(model, name) != nullptr; };
  return std::ranges::any_of(models::catalogue(), has_it) || std::ranges::any_of(declared.models, has_it);
}

bool is_strategy_key(std::string_view name) {
  const auto rows = keys();
  return std::any_of(rows.begin(), rows.end(), [&](const Key& key) {
    return key.parameter.name == name && key.place == KeyPlace::strategy;
  });
}

std::string in_quotes(const std::string& name) {
  return models::to_text(Value(name));
}

std::vector<std::string> run_key_names(bool with_strategy_keys) {
  std::vector<std::string> names;
  for (const Key& key : keys())
    if (with_strategy_keys || key.place == KeyPlace::anywhere) names.push_back(key.parameter.name);
  return names;
}

std::vector<std::string> hyperparameter_names(const models::Model& model) {
  std::vector<std::string> names;
  for (const Parameter& parameter : model.hyperparameters) names.push_back(parameter.name);
  return names;
}

std::vector<std::string> all_value_names(const Declared& declared) {
  std::vector<std::string> names{"model", "strategy"};
  for (const std::string& name : run_key_names(true)) names.push_back(name);
  for (const std::string& model : model_names(declared))
    for (const std::string& name : hyperparameter_names(*model_or_null(model, declared)))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

bool is_value_of_every_run(std::string_view name) {
  return run_parameter(name) != nullptr || is_run_value(name);
}

std::optional<Value> checked_value(const Parameter& parameter, const Item& item, Problems& problems) {
  const auto raw = as_value(item);
  auto wrong = raw ? models::problem_with(parameter, *raw)
                   : "must be " + models::allowed_text(parameter) + ", is " + description(item);
  // Any text may become an argument of a program, and stands in JSON.
  if (raw && !wrong && item.text() != nullptr &&
      (!models::is_utf8(*item.text()) || item.text()->find('\0') != std::string::npos))
    wrong = "must be text in UTF-8 without zero bytes";
  if (wrong) {
    problems.error(item.at, parameter.name + " " + *wrong + near_choice(parameter, item));
    return std::nullopt;
  }
  return models::coerced(parameter, *raw);
}

std::optional<Value> checked_value(const std::string& name, const Item& item, const Declared& declared,
                                   Problems& problems, const std::vector<std::string>& models) {
  const Parameter* parameter = run_parameter(name);
  if (parameter == nullptr) return suits_a_model(name, item, declared, problems, models);
  if (name == "model" || name == "dataset") {
    Parameter named = *parameter;
    named.choices = name == "model" ? model_names(declared) : dataset_names(declared);
    return checked_value(named, item, problems);
  }
  if (name == "batch") return checked_batch(*parameter, item, problems);
  if (name == "stage_split") return checked_stage_split(*parameter, item, problems);
  auto value = checked_value(*parameter, item, problems);
  if (!value || name != "data_split") return value;
  const auto wrong = split_problem(*value);
  if (!wrong) return value;
  problems.error(item.at, *wrong);
  return std::nullopt;
}

std::string key_advice(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::size_t few = 12;
  if (known.size() <= few || !models::nearest_name(name, known).empty())
    return models::name_advice(name, known);
  return "; `trainyard list keys` says what there is";
}

void report_unknown(const Member& member, const std::string& where, const std::vector<std::string>& known,
                    Problems& problems) {
  problems.error(member.at,
                 in_quotes(member.name) + " is not a key of " + where + key_advice(member.name, known));
}

}  // namespace trainyard::experiments
