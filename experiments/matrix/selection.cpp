#include "experiments/matrix/selection.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "experiments/config/key_lookup.h"

namespace trainyard::experiments {

namespace {

struct Pair {
  std::string name;
  std::string value;
};

std::optional<Pair> parse_pair(const std::string& text, const std::string& option, Diagnostics& problems) {
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos)
    return Pair{std::string(trimmed(std::string_view(text).substr(0, equals))),
                std::string(trimmed(std::string_view(text).substr(equals + 1)))};
  problems.error({.file = option}, in_quotes(text) + " is not name=value, as in epochs=1");
  return std::nullopt;
}

// Splits the text at commas outside of brackets and braces.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char character : text) {
    if (character == '[' || character == '{') ++depth;
    if (character == ']' || character == '}') --depth;
    if (character == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += character;
    }
  }
  return parts;
}

TomlNode as_item(const std::string& text, const Location& at) {
  if (auto item = parse_toml_value(text, at)) return std::move(*item);
  return {at, text};
}

bool any_model_has(const ExperimentConfig& config, const std::string& name) {
  const auto models = used_models(config);
  return std::ranges::any_of(models, [&](const std::string& model) {
    return hyperparameter(*model_or_null(model, config.declared), name) != nullptr;
  });
}

// Replaces the axis by one value. An axis of a zip is removed from the zip.
void replace_axis(Matrix& matrix, const std::string& name, const Setting& setting) {
  for (Dimension& dimension : matrix.dimensions)
    std::erase_if(dimension, [&](const Axis& axis) { return axis.name == name; });
  std::erase_if(matrix.dimensions, [](const Dimension& dimension) { return dimension.empty(); });
  matrix.dimensions.push_back({Axis{name, setting.at, {setting}}});
  sort_dimensions(matrix);
}

void set_everywhere(const std::string& name, const Setting& setting, ExperimentConfig& config) {
  const bool always_an_axis = name == "model" || name == "strategy";
  config.overrides[name] = setting;
  if (config.matrix.axis(name) != nullptr || (always_an_axis && config.matrix.given))
    replace_axis(config.matrix, name, setting);
  for (Row& row : config.include)
    if (always_an_axis || row.settings.contains(name)) row.settings[name] = setting;
}

void apply_change(const Pair& change, ExperimentConfig& config, Diagnostics& problems) {
  const Location at{.file = "--set " + change.name};
  if (const TomlNode item = as_item(change.value, at); change.name == "initial" && !names_weights(item))
    return set_initial(item, config.declared, problems);
  if (run_parameter(change.name) == nullptr && !is_hyperparameter(change.name, config.declared)) {
    problems.error(at, "{} is not a key{}", in_quotes(change.name),
                   key_advice(change.name, all_value_names(config.declared)));
  } else if (run_parameter(change.name) == nullptr && !any_model_has(config, change.name)) {
    problems.error(at, in_quotes(change.name) + " is not a key of any model of the experiment");
  } else if (auto value = checked_value(change.name, as_item(change.value, at), config.declared, problems)) {
    const auto* label = change.name == "strategy" ? std::get_if<std::string>(&*value) : nullptr;
    if (label != nullptr && strategy_kind(config, *label) == nullptr)
      problems.error(at, "there is no strategy {}{}", in_quotes(*label),
                     name_advice(*label, strategy_labels(config)));
    else
      set_everywhere(change.name, {std::move(*value), at}, config);
  }
}

using Values = std::map<std::string, Value>;
using Alternatives = std::map<std::string, std::vector<std::string>>;  // values by name

bool has_one_of(const Values& values, const std::string& name, const std::vector<std::string>& texts) {
  const auto found = values.find(name);
  return found != values.end() &&
         std::ranges::any_of(texts, [&](const std::string& text) { return means(text, found->second); });
}

Alternatives parse_where(const std::vector<std::string>& conditions, const std::string& option,
                         Diagnostics& problems) {
  Alternatives alternatives;
  for (const std::string& condition : conditions)
    for (const std::string& part : split(condition))
      if (const auto pair = parse_pair(part, option, problems))
        alternatives[pair->name].push_back(pair->value);
  return alternatives;
}

void report_useless(const std::string& option, const std::string& name, const std::vector<std::string>& texts,
                    const std::vector<Values>& runs, Diagnostics& problems) {
  const Location at{.file = fmt::format("{} {}", option, name)};
  std::vector<std::string> known;
  for (const Values& values : runs)
    if (const auto value = values.find(name); value != values.end())
      if (std::string text = plain_text(value->second); !contains(known, text))
        known.push_back(std::move(text));
  if (known.empty()) {
    std::set<std::string> names;
    for (const Values& values : runs)
      for (const auto& entry : values) names.insert(entry.first);
    problems.error(at, "no run has a value named {}{}", in_quotes(name),
                   name_advice(name, std::vector(names.begin(), names.end())));
    return;
  }
  for (const std::string& text : texts)
    if (std::ranges::none_of(runs, [&](const Values& values) { return has_one_of(values, name, {text}); }))
      problems.error(at, "no run has {} = {}{}", name, text, name_advice(text, known));
}

std::vector<Values> values_of(const std::vector<ExpandedRun>& runs) {
  std::vector<Values> values;
  values.reserve(runs.size());
  for (const ExpandedRun& each : runs) values.push_back(values_by_name(each.run));
  return values;
}

bool has_all(const Values& values, const Alternatives& alternatives) {
  return std::ranges::all_of(alternatives,
                             [&](const auto& each) { return has_one_of(values, each.first, each.second); });
}

void keep(std::vector<ExpandedRun>& runs, const std::vector<bool>& wanted) {
  std::size_t place = 0;
  std::erase_if(runs, [&](const ExpandedRun&) { return !wanted[place++]; });
}

}  // namespace

void apply_set(const std::vector<std::string>& changes, ExperimentConfig& config, Diagnostics& problems) {
  for (const std::string& text : changes)
    if (const auto change = parse_pair(text, "--set", problems)) apply_change(*change, config, problems);
}

void apply_where(const std::vector<std::string>& conditions, std::vector<ExpandedRun>& runs,
                 Diagnostics& problems) {
  const std::size_t before = runs.size(), errors = problems.errors();
  keep(runs, matching(conditions, values_of(runs), "--where", problems));
  if (runs.empty() && before > 0 && problems.errors() == errors)
    problems.error({.file = "--where"}, "no run has all of these values");
}

void apply_exclude_where(const std::vector<std::string>& conditions, std::vector<ExpandedRun>& runs,
                         Diagnostics& problems) {
  const std::string option = "--exclude-where";
  const std::size_t errors = problems.errors();
  if (runs.empty()) return;
  for (const std::string& condition : conditions) {
    auto removed = matching({condition}, values_of(runs), option, problems);
    removed.flip();
    if (problems.errors() == errors) keep(runs, removed);
  }
  if (runs.empty()) problems.error({.file = option}, "no run is left, because all are excluded");
}

std::vector<bool> matching(const std::vector<std::string>& conditions, const std::vector<Values>& runs,
                           const std::string& option, Diagnostics& problems) {
  const Alternatives alternatives = parse_where(conditions, option, problems);
  std::vector<bool> found;
  if (runs.empty()) return found;
  for (const auto& [name, texts] : alternatives) report_useless(option, name, texts, runs, problems);
  found.reserve(runs.size());
  for (const Values& values : runs) found.push_back(has_all(values, alternatives));
  return found;
}

bool means(const std::string& text, const Value& value) {
  if (text == plain_text(value)) return true;
  if (text.starts_with('{') && text.ends_with('}') && text.size() > 2)  // named dimensions, as in the file
    return trimmed(std::string_view(text).substr(1, text.size() - 2)) == plain_text(value);
  const auto item = parse_toml_value(text, {});
  const auto parsed = item ? as_value(*item) : std::nullopt;
  if (!parsed) return false;
  if (const auto* number = std::get_if<double>(&value))
    if (const auto* integer = std::get_if<std::int64_t>(&*parsed))
      return static_cast<double>(*integer) == *number;
  return *parsed == value;
}

}  // namespace trainyard::experiments
