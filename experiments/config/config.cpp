#include "experiments/config/config.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "base/named_row.h"
#include "experiments/config/key_lookup.h"
#include "models/datasets/datasets.h"

namespace trainyard::experiments {

namespace {

constexpr std::size_t longest_name = 80;

bool in_name(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 ||
         std::string_view(" _.-").find(character) != std::string_view::npos;
}

// A leading "." would make a hidden or a parent folder, a leading "-" an option.
bool begins_name(char character) {
  return std::string_view(" .-").find(character) == std::string_view::npos;
}

void read_name(const TomlMember& member, ExperimentConfig& config, Diagnostics& problems) {
  const std::string* name = member.value.text();
  if (name != nullptr && is_experiment_name(*name))
    config.name = *name;
  else
    report_wrong("name", std::string(name_rule) + " (a folder has this name)", member.value, problems);
}

void read_data_seed(const TomlMember& member, ExperimentConfig& config, Diagnostics& problems) {
  std::int64_t seed = 0;
  read_value(bounded("data_seed", ValueType::integer, Bound{0}), member.value, seed, problems);
  config.data_seed = static_cast<std::uint64_t>(seed);
}

void read_published_name(const TomlMember& member, ExperimentConfig& config, Diagnostics& problems) {
  const std::string* file = path_or_argument(member.value);
  if (file == nullptr)
    return report_wrong("published", "the name of a TOML file with published numbers", member.value,
                        problems);
  config.published = *file;
  config.published_at = member.value.at;
}

void report_misplaced(const TomlMember& member, const std::string& where,
                      const std::vector<std::string>& known, const Declared& declared,
                      Diagnostics& problems) {
  std::string place;
  if (member.name == "model" || member.name == "strategy") place = "[matrix]";
  if (member.name == "kind") place = "[strategy.*]";
  if (is_strategy_key(member.name)) place = "[strategy.*] or [matrix]";
  if (is_hyperparameter(member.name, declared))
    place = "[model.*], [defaults] or [matrix], for models that have it";
  if (declares_model(member.name)) place = "[model.NAME], where NAME is a model of your own";
  if (where == "the file" && run_parameter(member.name) != nullptr && place.empty())
    place = "[defaults], [model.*], [strategy.*] or [matrix]";
  if (place.empty()) return report_unknown(member, where, known, problems);
  problems.error(member.at, "{} is not a key of {}; it belongs in {}", in_quotes(member.name), where, place);
}

// Keys of [model.NAME]. The parameters of a declared model are in a table of their own.
std::vector<std::string> model_key_names(const models::Model& model) {
  std::vector<std::string> names;
  if (!is_declared(model)) names = hyperparameter_names(model);
  for (const std::string& name : run_key_names(false)) names.push_back(name);
  return names;
}

// A table with keys of a declaration that was not accepted as one.
bool is_wrong_declaration(const TomlMember& member) {
  const TomlNode::Table* table = member.value.table();
  return table != nullptr && std::any_of(table->begin(), table->end(),
                                         [](const TomlMember& each) { return declares_model(each.name); });
}

void read_model(const TomlMember& member, const models::Model& model, ExperimentConfig& config,
                Diagnostics& problems) {
  const std::string where = "[model." + member.name + "]";
  const TomlNode::Table* table = section_table(member, where, problems);
  if (table == nullptr) return;
  TomlNode::Table settings;
  for (const TomlMember& each : *table) {
    const bool is_key = each.name == "initial" && names_weights(each.value);
    if ((is_declared(model) || is_exported(model)) && declares_model(each.name) && !is_key) continue;
    if (is_declared(model) && hyperparameter(model, each.name) != nullptr)
      problems.error(each.at, "{} of {} is a parameter of this model; set it in `parameters`",
                     in_quotes(each.name), where);
    else
      settings.push_back(each);
  }
  read_settings(settings, where, model_key_names(model), config.models[member.name], config.declared,
                problems, {member.name});
}

void read_models(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems) {
  for (const TomlMember& member : members_of(section, "[model.*]", problems)) {
    if (const models::Model* model = model_or_null(member.name, config.declared))
      read_model(member, *model, config, problems);
    else if (!is_wrong_declaration(member))  // already reported
      report_no_model(member, config.declared, problems);
  }
}

// Keys of [defaults]: run keys, and hyper-parameters of the used models, or of all if the matrix is broken.
std::vector<std::string> default_key_names(const ExperimentConfig& config) {
  std::vector<std::string> names = run_key_names(false);
  for (const std::string& model : config.matrix.broken ? model_names(config.declared) : used_models(config))
    for (const std::string& name : hyperparameter_names(*model_or_null(model, config.declared)))
      names.push_back(name);
  return names;
}

void read_row(const TomlNode& item, const std::string& where, const std::vector<std::string>& known,
              const Declared& declared, std::vector<Row>& rows, Diagnostics& problems) {
  if (item.table() == nullptr) return report_wrong(where, "a table of values", item, problems);
  if (item.table()->empty())
    return problems.error(item.at, "{} must be a table of values, but is empty", where);
  Row row;
  row.at = item.at;
  const std::size_t errors = problems.errors();
  read_settings(*item.table(), where, known, row.settings, declared, problems);
  row.broken = problems.errors() > errors;
  for (const TomlMember& member : *item.table())
    if (!row.settings.contains(member.name)) row.wrong.push_back(member.name);
  rows.push_back(std::move(row));
}

std::vector<Row> read_rows(const TomlMember& section, const Declared& declared, Diagnostics& problems) {
  std::vector<Row> rows;
  const std::string where = "[[" + section.name + "]]";
  const std::vector<std::string> known = all_value_names(declared);
  if (const TomlNode::List* list = section.value.list())
    for (const TomlNode& item : *list) read_row(item, where, known, declared, rows, problems);
  else
    problems.error(section.value.at, "{} must be written as {}, once per row", section.name, where);
  return rows;
}

// The section [matrix]: lists of alternatives, zips and counted seeds.

using Names = std::set<std::string>;  // axes so far

bool is_new_axis(const TomlMember& member, const std::string& where, const Declared& declared, Names& names,
                 Diagnostics& problems) {
  if (run_parameter(member.name) == nullptr && !is_hyperparameter(member.name, declared)) {
    report_unknown(member, where, all_value_names(declared), problems);
    return false;
  }
  if (names.insert(member.name).second) return true;
  problems.error(member.at, member.name + " is already an axis of the matrix");
  return false;
}

std::vector<Setting> alternatives(const TomlMember& member, const Declared& declared, Diagnostics& problems) {
  std::vector<Setting> values;
  const TomlNode::List* list = member.value.list();
  if (list == nullptr || list->empty()) {
    const std::string allowed = member.name == "seed" ? " or { count = n } or { min = n, max = m }" : "";
    problems.error(member.value.at, "{} must be a list of alternatives{}, but is {}", member.name, allowed,
                   description(member.value));
    return values;
  }
  for (const TomlNode& item : *list)
    if (auto value = checked_value(member.name, item, declared, problems))
      values.push_back({std::move(*value), item.at});
  return values;
}

std::vector<Setting> first_seeds(std::int64_t count, const Location& at) {
  std::vector<Setting> seeds;
  for (std::int64_t seed = 0; seed < count; ++seed) seeds.push_back({seed, at});
  return seeds;
}

// Seeds 0 … n − 1 of { count = n }, or of { min, max = n }.
std::vector<Setting> counted_seeds(const TomlNode& item, std::optional<SeedRange>& range,
                                   Diagnostics& problems) {
  const std::size_t errors = problems.errors();
  std::int64_t count = 0, min = 0, max = 0;
  const Bound most{static_cast<double>(max_runs)}, fewest{3}, last{most_seeds};
  read_keys(*item.table(), "seed",
            {{"count", value_reader(bounded("count", ValueType::integer, Bound{1}, most), count, problems)},
             {"min", value_reader(bounded("min", ValueType::integer, fewest, last), min, problems)},
             {"max", value_reader(bounded("max", ValueType::integer, fewest, last), max, problems)}},
            problems);
  if (problems.errors() > errors) return {};
  if (count > 0 && (min > 0 || max > 0)) {
    problems.error(item.at, "seed has count and a range; write { count = n } or { min = n, max = m }");
    return {};
  }
  if (count == 0 && max == 0) {
    problems.error(item.at, "seed must be a list of seeds, { count = n } or { min = n, max = m }");
    return {};
  }
  if (max == 0) return first_seeds(count, item.at);
  if (min == 0) min = std::min<std::int64_t>(usual_min_seeds, max);
  if (min > max) {
    problems.error(item.at,
                   "min = {} is above max = {}; a cell has its first look at min seeds and its last at max",
                   min, max);
    return {};
  }
  range = {static_cast<int>(min), static_cast<int>(max)};
  return first_seeds(max, item.at);
}

// The axis; without values if it has an error. `seeds`: that of seed = { min, max }.
Axis read_axis(const TomlMember& member, const std::string& where, const Declared& declared, Names& names,
               std::optional<SeedRange>& seeds, Diagnostics& problems) {
  Axis axis{member.name, member.at, {}};
  if (!is_new_axis(member, where, declared, names, problems)) return axis;
  const bool counted = member.name == "seed" && member.value.table() != nullptr;
  axis.values =
      counted ? counted_seeds(member.value, seeds, problems) : alternatives(member, declared, problems);
  return axis;
}

// Reports repeated values and removes them.
void drop_repeated_values(Axis& axis, Diagnostics& problems) {
  std::set<Value> seen;
  std::erase_if(axis.values, [&](const Setting& setting) {
    if (seen.insert(setting.value).second) return false;
    problems.error(setting.at, "{} has {} twice", axis.name, trainyard::to_text(setting.value));
    return true;
  });
}

bool equally_long(const Dimension& dimension, Diagnostics& problems) {
  const Axis& first = dimension.front();
  for (const Axis& axis : dimension) {
    if (axis.values.size() == first.values.size()) continue;
    problems.error(axis.at, "the lists of a zip must have equal lengths: {} has length {}, {} has length {}",
                   axis.name, axis.values.size(), first.name, first.values.size());
    return false;
  }
  return true;
}

// The axes of one zip. Empty if there is an error.
Dimension read_zip(const TomlNode& group, const Declared& declared, Names& names, Diagnostics& problems) {
  Dimension dimension;
  if (group.table() == nullptr || group.table()->empty()) {
    problems.error(group.at, "a zip must be a table of lists of equal length, but is " +
                                 (group.table() ? std::string("empty") : description(group)));
    return dimension;
  }
  const std::size_t errors = problems.errors();
  std::optional<SeedRange> seeds;
  for (const TomlMember& member : *group.table())
    dimension.push_back(read_axis(member, "zip", declared, names, seeds, problems));
  if (seeds) problems.error(group.at, "a zip cannot have seed = { min, max }; write the seeds as a list");
  if (problems.errors() > errors || !equally_long(dimension, problems)) dimension.clear();
  return dimension;
}

std::vector<Dimension> read_zips(const TomlMember& member, const Declared& declared, Names& names,
                                 Diagnostics& problems) {
  std::vector<Dimension> dimensions;
  const TomlNode::List* list = member.value.list();
  if (list == nullptr) {
    report_wrong("zip", "a list of tables, as in [{ learning_rate = [0.1, 0.01], batch = [128, 64] }]",
                 member.value, problems);
    return dimensions;
  }
  for (const TomlNode& group : *list) dimensions.push_back(read_zip(group, declared, names, problems));
  return dimensions;
}

std::vector<Dimension> read_dimensions(const TomlNode::Table& table, const Declared& declared,
                                       std::optional<SeedRange>& seeds, Diagnostics& problems) {
  std::vector<Dimension> dimensions;
  Names names;
  for (const TomlMember& member : table) {
    if (member.name == "zip") {
      for (Dimension& zip : read_zips(member, declared, names, problems))
        dimensions.push_back(std::move(zip));
    } else {
      dimensions.push_back({read_axis(member, "[matrix]", declared, names, seeds, problems)});
      drop_repeated_values(dimensions.back().front(), problems);
    }
  }
  std::erase_if(dimensions,
                [](const Dimension& each) { return each.empty() || each.front().values.empty(); });
  return dimensions;
}

// Sort position: model first, strategy second, seed last.
int rank(const Dimension& dimension) {
  int lowest = 3;
  for (const Axis& axis : dimension) {
    const int of_axis = axis.name == "model" ? 0 : axis.name == "strategy" ? 1 : axis.name == "seed" ? 3 : 2;
    lowest = std::min(lowest, of_axis);
  }
  return lowest;
}

void read_matrix(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems) {
  Matrix& matrix = config.matrix;
  matrix.given = true;
  matrix.at = section.value.at;
  const std::size_t errors = problems.errors();
  matrix.dimensions =
      read_dimensions(members_of(section, "[matrix]", problems), config.declared, matrix.seeds, problems);
  sort_dimensions(matrix);
  matrix.broken = problems.errors() > errors || !config.declared.refused.empty();
}

}  // namespace

bool is_experiment_name(const std::string& name) {
  return !name.empty() && name.size() <= longest_name && begins_name(name.front()) &&
         std::ranges::all_of(name, in_name);
}

std::string experiment_name(std::string text) {
  std::ranges::replace_if(
      text, [](char character) { return !in_name(character); }, '-');
  text.erase(text.begin(), std::ranges::find_if(text, begins_name));
  text.resize(std::min(text.size(), longest_name));
  return text.empty() ? "experiment" : text;
}

const std::string* path_or_argument(const TomlNode& item) {
  const std::string* text = item.text();
  return text == nullptr || text->empty() || text->find('\0') != std::string::npos ? nullptr : text;
}

void read_settings(const TomlNode::Table& table, const std::string& where,
                   const std::vector<std::string>& known, Settings& settings, const Declared& declared,
                   Diagnostics& problems, const std::vector<std::string>& models) {
  for (const TomlMember& member : table) {
    if (!contains(known, member.name)) {
      report_misplaced(member, where, known, declared, problems);
    } else if (auto value = checked_value(member.name, member.value, declared, problems, models)) {
      settings[member.name] = {std::move(*value), member.value.at};
    }
  }
}

void report_no_model(const TomlMember& member, const Declared& declared, Diagnostics& problems) {
  problems.error(
      member.at, "there is no model {}{}{}", in_quotes(member.name),
      name_advice(member.name, model_names(declared)),
      nearest_name(member.name, model_names(declared)).empty() ? "; a model of your own needs a title" : "");
}

std::vector<std::string> used_models(const ExperimentConfig& config) {
  std::vector<std::string> names;
  const auto add = [&](const Value& value) {
    const auto& name = std::get<std::string>(value);
    if (!contains(names, name)) names.push_back(name);
  };
  if (const Axis* axis = config.matrix.axis("model"))
    for (const Setting& setting : axis->values) add(setting.value);
  for (const Row& row : config.include)
    if (const auto model = row.settings.find("model"); model != row.settings.end()) add(model->second.value);
  return names;
}

ExperimentConfig read_config(const TomlNode& root, const std::string& file, Diagnostics& problems) {
  ExperimentConfig config;
  config.declared = read_declared(root, problems);
  const TomlMember* defaults = nullptr;
  const auto with = [&](auto read) {
    return [&, read](const TomlMember& section) { read(section, config, problems); };
  };
  const auto rows = [&](std::vector<Row>& into) {
    return [&](const TomlMember& section) { into = read_rows(section, config.declared, problems); };
  };
  const std::vector<KeyReader> sections{{"name", with(read_name)},
                                        {"data_seed", with(read_data_seed)},
                                        {"data", with(read_data)},
                                        {"matrix", with(read_matrix)},
                                        {"defaults", [&](const TomlMember& section) { defaults = &section; }},
                                        {"model", with(read_models)},
                                        {"strategy", with(read_strategies)},
                                        {"exclude", rows(config.exclude)},
                                        {"include", rows(config.include)},
                                        {"compare", with(read_compare)},
                                        {"expect", with(read_expect)},
                                        {"machine", with(read_machine)},
                                        {"published", with(read_published_name)},
                                        {"metric", [](const TomlMember&) {}},
                                        {"dataset", [](const TomlMember&) {}}};  // both were read above
  for (const TomlMember& section : *root.table())
    if (const KeyReader* reader = row_or_null(sections, &KeyReader::name, section.name))
      reader->read(section);
    else
      report_misplaced(section, "the file", names_of(sections, &KeyReader::name), config.declared, problems);
  if (row_or_null(*root.table(), &TomlMember::name, "name") == nullptr)
    problems.error({file, 1, 1}, "the experiment has no name; add one, as in name = \"first sweep\"");
  if (defaults != nullptr)  // last, because its keys depend on the used models
    read_settings(members_of(*defaults, "[defaults]", problems), "[defaults]", default_key_names(config),
                  config.defaults, config.declared, problems, used_models(config));
  check_strategies(config, problems);
  return config;
}

const Axis* Matrix::axis(const std::string& name) const {
  for (const Dimension& dimension : dimensions)
    for (const Axis& each : dimension)
      if (each.name == name) return &each;
  return nullptr;
}

void use_seeds_until_decided(int max, Matrix& matrix) {
  for (Dimension& dimension : matrix.dimensions)
    std::erase_if(dimension, [](const Axis& axis) { return axis.name == "seed"; });
  std::erase_if(matrix.dimensions, [](const Dimension& dimension) { return dimension.empty(); });
  const Location at{.file = "--max-seeds"};
  matrix.dimensions.push_back({Axis{"seed", at, first_seeds(max, at)}});
  matrix.seeds = {std::min(usual_min_seeds, max), max};
  sort_dimensions(matrix);
}

void sort_dimensions(Matrix& matrix) {
  std::ranges::stable_sort(matrix.dimensions, {}, rank);
}

void check_hyperparameters(const Matrix& matrix, const Declared& declared, Diagnostics& problems) {
  const Axis* models_axis = matrix.axis("model");
  if (models_axis == nullptr) return;
  for (const Dimension& dimension : matrix.dimensions)
    for (const Axis& axis : dimension)
      for (const Setting& model : models_axis->values) {
        const auto& name = std::get<std::string>(model.value);
        if (run_parameter(axis.name) != nullptr ||
            hyperparameter(*model_or_null(name, declared), axis.name) != nullptr)
          continue;
        problems.error(axis.at,
                       "{} is not a key of model {}, which is in the matrix; set it in the [model.*] tables "
                       "of models that have it",
                       axis.name, in_quotes(name));
      }
}

}  // namespace trainyard::experiments
