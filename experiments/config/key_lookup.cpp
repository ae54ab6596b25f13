#include "experiments/config/key_lookup.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/number.h"
#include "base/text.h"
#include "experiments/run/run.h"
#include "models/tensor_split.h"

namespace trainyard::experiments {

namespace {

std::optional<std::string> split_problem(const Value& value) {
  const auto& fractions = std::get<std::vector<double>>(value);
  const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  if (std::abs(sum - 1) <= 1e-9) return std::nullopt;
  return "data_split must sum to 1, sums to " + trainyard::to_text(Value(std::round(sum * 1e9) / 1e9));
}

std::string near_choice(const Parameter& parameter, const TomlNode& item) {
  const std::string* text = item.text();
  const std::string near = text == nullptr ? "" : nearest_name(*text, parameter.choices);
  return near.empty() ? "" : "; did you mean " + in_quotes(near) + "?";
}

// Accepts a value that suits the parameter of any model. Otherwise reports an error for one of `meant`.
std::optional<Value> suits_a_model(const std::string& name, const TomlNode& item, const Declared& declared,
                                   Diagnostics& problems, const std::vector<std::string>& meant) {
  const Parameter* nearest = nullptr;
  bool of_meant = false;
  const auto raw = as_value(item);
  for (const std::string& model : model_names(declared)) {
    const Parameter* parameter = hyperparameter(*model_or_null(model, declared), name);
    if (parameter == nullptr) continue;
    if (raw && !problem_with(*parameter, *raw)) return coerced(*parameter, *raw);
    const bool is_meant = contains(meant, model);
    if (nearest == nullptr || (is_meant && !of_meant)) nearest = parameter;
    of_meant = of_meant || is_meant;
  }
  return nearest == nullptr ? std::nullopt : checked_value(*nearest, item, problems);
}

constexpr std::string_view per_replica = " per replica";

void report_other(const Parameter& parameter, const TomlNode& item, Diagnostics& problems) {
  report_wrong(parameter.name, allowed_text(*key_or_null(parameter.name)), item, problems);
}

// The number before " per replica". Empty for any other text.
std::optional<std::int64_t> replica_size(std::string_view text) {
  if (!text.ends_with(per_replica)) return std::nullopt;
  text.remove_suffix(per_replica.size());
  return parse_number<std::int64_t>(text);
}

std::optional<Value> batch_table(const Parameter& parameter, const TomlNode& item, Diagnostics& problems) {
  const std::size_t errors = problems.errors();
  std::int64_t size = 0;
  std::string per = "global";
  read_keys(*item.table(), "batch",
            {{"size", value_reader(parameter, size, problems)},
             {"per", value_reader(choice("per", {"global", "replica"}), per, problems)}},
            problems);
  if (row_or_null(*item.table(), &TomlMember::name, "size") == nullptr)
    problems.error(item.at, "batch has no size; add it, as in { size = 128, per = \"global\" }");
  if (problems.errors() > errors) return std::nullopt;
  return batch_value(size, per);
}

// `parameter` bounds the number.
std::optional<Value> checked_batch(const Parameter& parameter, const TomlNode& item, Diagnostics& problems) {
  if (item.table() != nullptr) return batch_table(parameter, item, problems);
  auto raw = as_value(item);
  if (raw && !problem_with(parameter, *raw)) return raw;
  if (const auto size = item.text() ? replica_size(*item.text()) : std::nullopt)
    if (!problem_with(parameter, *size)) return batch_value(*size, "replica");
  report_other(parameter, item, problems);
  return std::nullopt;
}

// Dimensions with the number of parts, as text: "width = 2, heads = 2".
std::optional<Value> named_dimensions(const Parameter& parameter, const TomlNode& item,
                                      Diagnostics& problems) {
  const std::size_t errors = problems.errors();
  std::map<std::string, std::int64_t> parts;
  std::vector<KeyReader> readers;
  for (const char* name : models::split_dimensions())
    readers.push_back({name, value_reader(bounded(name, ValueType::integer, Bound{2}, Bound{1024}),
                                          parts[name], problems)});
  read_keys(*item.table(), parameter.name, readers, problems);
  if (problems.errors() > errors) return std::nullopt;
  std::string text;
  std::set<std::int64_t> numbers;
  for (const char* name : models::split_dimensions()) {
    if (parts[name] == 0) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, parts[name]);
    numbers.insert(parts[name]);
  }
  if (numbers.size() == 1) return Value(text);
  if (numbers.empty())
    report_other(parameter, item, problems);
  else
    problems.error(item.at,
                   "the dimensions of {} must have the same number, because each rank has one part of each; "
                   "are {}",
                   parameter.name, text);
  return std::nullopt;
}

// "auto", or ascending layers. Whether they fit the model is checked when a run is resolved.
std::optional<Value> checked_layers(const Parameter& parameter, const TomlNode& item, Diagnostics& problems) {
  if (item.text() != nullptr && *item.text() == "auto") return Value(*item.text());
  if (parameter.name == "tensor_split") {
    const auto in_text =
        item.text() == nullptr ? std::nullopt : parse_toml_value("{" + *item.text() + "}", item.at);
    if (const TomlNode& named = in_text ? *in_text : item; named.table() != nullptr)
      return named_dimensions(parameter, named, problems);
  }
  auto raw = as_value(item);
  if (!raw || problem_with(parameter, *raw)) {
    report_other(parameter, item, problems);
    return std::nullopt;
  }
  const auto& layers = std::get<std::vector<std::int64_t>>(*raw);
  if (std::is_sorted(layers.begin(), layers.end(), std::less_equal<>())) return raw;
  problems.error(item.at, "the {} of {} must be in ascending order, are {}",
                 parameter.name == "stage_split" ? "boundaries" : "layers", parameter.name,
                 trainyard::to_text(*raw));
  return std::nullopt;
}

}  // namespace

Parameter bounded(std::string name, ValueType type, std::optional<Bound> minimum,
                  std::optional<Bound> maximum) {
  return {.name = std::move(name), .type = type, .minimum = minimum, .maximum = maximum};
}

Parameter choice(std::string name, std::vector<std::string> choices) {
  return {.name = std::move(name), .type = ValueType::text, .choices = std::move(choices)};
}

const Parameter* run_parameter(std::string_view name) {
  static const Parameter model = choice("model", models::model_names());
  static const Parameter strategy = choice("strategy", {});  // the file defines the choices
  if (name == "model") return &model;
  if (name == "strategy") return &strategy;
  const Key* key = key_or_null(name);
  return key == nullptr ? nullptr : &key->parameter;
}

const Parameter* hyperparameter(const models::Model& model, std::string_view name) {
  return row_or_null(model.hyperparameters, &Parameter::name, name);
}

bool is_hyperparameter(std::string_view name, const Declared& declared) {
  const auto has_it = [&](const models::Model& model) { return hyperparameter(model, name) != nullptr; };
  return std::ranges::any_of(models::catalogue(), has_it) || std::ranges::any_of(declared.models, has_it);
}

bool is_strategy_key(std::string_view name) {
  const Key* key = key_or_null(name);
  return key != nullptr && key->place == KeyPlace::strategy;
}

std::string in_quotes(const std::string& name) {
  return trainyard::to_text(Value(name));
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_identifier(const std::string& name) {
  const auto in_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::ranges::all_of(name, in_name);
}

std::vector<std::string> run_key_names(bool with_strategy_keys) {
  std::vector<std::string> names;
  for (const Key& key : keys())
    if (with_strategy_keys || key.place == KeyPlace::anywhere) names.push_back(key.parameter.name);
  return names;
}

std::vector<std::string> hyperparameter_names(const models::Model& model) {
  return names_of(model.hyperparameters, &Parameter::name);
}

std::vector<std::string> all_value_names(const Declared& declared) {
  std::vector<std::string> names{"model", "strategy"};
  for (const std::string& name : run_key_names(true)) names.push_back(name);
  for (const std::string& model : model_names(declared))
    for (const std::string& name : hyperparameter_names(*model_or_null(model, declared)))
      if (!contains(names, name)) names.push_back(name);
  return names;
}

bool is_value_of_every_run(std::string_view name) {
  return run_parameter(name) != nullptr || is_run_value(name);
}

std::optional<Value> checked_value(const Parameter& parameter, const TomlNode& item, Diagnostics& problems) {
  const auto raw = as_value(item);
  auto wrong = raw ? problem_with(parameter, *raw)
                   : fmt::format("must be {}, but is {}", allowed_text(parameter), description(item));
  // Any text may become an argument of a program and is written to JSON.
  if (raw && !wrong && item.text() != nullptr &&
      (!is_utf8(*item.text()) || item.text()->find('\0') != std::string::npos))
    wrong = "must be text in UTF-8 without zero bytes";
  if (wrong) {
    problems.error(item.at, "{} {}{}", parameter.name, *wrong, near_choice(parameter, item));
    return std::nullopt;
  }
  return coerced(parameter, *raw);
}

std::optional<Value> checked_value(const std::string& name, const TomlNode& item, const Declared& declared,
                                   Diagnostics& problems, const std::vector<std::string>& models) {
  const Parameter* parameter = run_parameter(name);
  if (parameter == nullptr) return suits_a_model(name, item, declared, problems, models);
  if (name == "model" || name == "dataset") {
    Parameter named = *parameter;
    named.choices = name == "model" ? model_names(declared) : dataset_names(declared);
    const bool reported = name == "model" && item.text() != nullptr &&
                          std::ranges::find(declared.refused, *item.text()) != declared.refused.end();
    if (reported) return std::nullopt;
    return checked_value(named, item, problems);
  }
  if (name == "batch") return checked_batch(*parameter, item, problems);
  if (name == "stage_split" || name == "tensor_split") return checked_layers(*parameter, item, problems);
  auto value = checked_value(*parameter, item, problems);
  if (!value || name != "data_split") return value;
  const auto wrong = split_problem(*value);
  if (!wrong) return value;
  problems.error(item.at, *wrong);
  return std::nullopt;
}

std::string key_advice(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::size_t few = 12;
  if (known.size() <= few || !nearest_name(name, known).empty()) return name_advice(name, known);
  return "; run `trainyard list keys` to see all keys";
}

bool is_root_key(std::string_view name) {
  return name == "name" || name == "data_seed" || name == "published";
}

void report_unknown(const TomlMember& member, const std::string& where, const std::vector<std::string>& known,
                    Diagnostics& problems) {
  if (where.starts_with('[') && is_root_key(member.name))
    return problems.error(member.at, "{} is not a key of {}; it must be above the first section",
                          in_quotes(member.name), where);
  problems.error(member.at, "{} is not a key of {}{}", in_quotes(member.name), where,
                 key_advice(member.name, known));
}

void report_wrong(const std::string& what, const std::string& allowed, const TomlNode& item,
                  Diagnostics& problems) {
  problems.error(item.at, "{} must be {}, but is {}", what, allowed, description(item));
}

void read_keys(const TomlNode::Table& table, const std::string& where, const std::vector<KeyReader>& keys,
               Diagnostics& problems) {
  for (const TomlMember& member : table)
    if (const KeyReader* key = row_or_null(keys, &KeyReader::name, member.name))
      key->read(member);
    else
      report_unknown(member, where, names_of(keys, &KeyReader::name), problems);
}

void read_table(const TomlMember& member, const std::string& where, const std::vector<KeyReader>& keys,
                Diagnostics& problems) {
  read_keys(members_of(member, where, problems), where, keys, problems);
}

const TomlNode::Table* section_table(const TomlMember& section, const std::string& what,
                                     Diagnostics& problems) {
  if (section.value.table() == nullptr) report_wrong(what, "a table", section.value, problems);
  return section.value.table();
}

const TomlNode::Table& members_of(const TomlMember& section, const std::string& what, Diagnostics& problems) {
  static const TomlNode::Table none;
  const TomlNode::Table* members = section_table(section, what, problems);
  return members == nullptr ? none : *members;
}

Batch batch_of(const Value& value) {
  if (const auto* size = std::get_if<std::int64_t>(&value)) return {.size = *size, .per = "global"};
  return {.size = replica_size(std::get<std::string>(value)).value(), .per = "replica"};
}

}  // namespace trainyard::experiments
