#include "experiments/config/declared.h"

#include <algorithm>

#include "base/named_row.h"
#include "base/text.h"
#include "experiments/config/config.h"
#include "experiments/config/key_lookup.h"
#include "experiments/run/run.h"
#include "experiments/run/run_model.h"
#include "models/tasks.h"

namespace trainyard::experiments {

namespace {

Parameter task_parameter() {
  return choice("task", models::task_names());
}

// Reads a title or a unit.
void read_title(const TomlMember& member, std::string& title, Diagnostics& problems,
                const std::string& example = "") {
  const std::string* text = member.value.text();
  if (text != nullptr && is_title(*text))
    title = *text;
  else
    report_wrong(member.name, "one line of 1 to 80 bytes" + example, member.value, problems);
}

// Reads a parameter. Its type is the type of its default.
void read_parameter(const TomlMember& member, models::Model& model, Diagnostics& problems) {
  Parameter parameter;
  parameter.name = member.name;
  parameter.meaning = "a parameter of the user's own model";
  constexpr std::size_t longest = 40;
  if (!is_identifier(member.name) || member.name.size() > longest)
    return problems.error(member.at,
                          "the name of a parameter must be 1 to 40 letters, digits and underscores and must "
                          "not begin with a digit, but is " +
                              in_quotes(member.name));
  if (is_value_of_every_run(member.name))
    return problems.error(member.at,
                          in_quotes(member.name) +
                              " is a key of every run; give the parameter another name, or set the "
                              "key where it belongs");
  auto value = as_value(member.value);
  if (!value)
    return problems.error(member.value.at,
                          "{} must be a number, a text, true, false or a list of numbers, but is {}",
                          member.name, description(member.value));
  parameter.type = static_cast<ValueType>(value->index());
  parameter.fallback = checked_value(parameter, member.value, problems);
  if (parameter.fallback) model.hyperparameters.push_back(std::move(parameter));
}

void read_parameters(const TomlNode& item, models::Model& model, Diagnostics& problems) {
  if (item.table() == nullptr)
    return report_wrong("parameters", "a table of defaults, as in { width = 64 }", item, problems);
  for (const TomlMember& member : *item.table()) read_parameter(member, model, problems);
}

bool has_own_name(const TomlMember& member, const std::string& what, Diagnostics& problems) {
  if (is_experiment_name(member.name)) return true;
  problems.error(member.at, "the name of a {} must be {}", what, name_rule);
  return false;
}

void read_initial(const TomlNode& item, models::Model& model, Diagnostics& problems) {
  if (names_weights(item)) return;
  const std::string* text = item.text();
  if (text != nullptr && (*text == "exported" || *text == "seed" || *text == "program"))
    model.initial = *text;
  else
    report_wrong(
        "initial",
        "\"exported\" (the weights of the .pt2 file), \"seed\" (drawn for each seed), \"program\" (of "
        "`trainyard export --seeds`) or the name of a .safetensors file",
        item, problems);
}

// Declares an exported network. Its file is relative to the folder of the experiment file.
void declare_exported(const models::Model& named, const TomlMember& file, Declared& declared,
                      Diagnostics& problems) {
  if (file.value.text() == nullptr)
    return report_wrong("export", "the name of a .pt2 file", file.value, problems);
  if (named.task.empty()) return;
  try {
    const std::filesystem::path folder = std::filesystem::path(file.at.file).parent_path();
    const ExportedLine exported{named.name, named.title, named.task,
                                std::filesystem::absolute(folder / *file.value.text()), named.initial};
    declared.models.push_back(exported_model(exported));
    require_float32(exported);
  } catch (const UserError& error) {
    declared.refused.push_back(named.name);
    problems.error(file.value.at, error.what());
  }
}

void declare_model(const TomlMember& member, Declared& declared, Diagnostics& problems) {
  if (!has_own_name(member, "model", problems)) return;
  const auto line = [&](std::string_view name) {
    return row_or_null(*member.value.table(), &TomlMember::name, name);
  };
  const TomlMember* file = line("export");
  models::Model model;
  model.name = member.name;
  if (file != nullptr) model.title = member.name;
  if (const TomlMember* title = line("title"))
    read_title(*title, model.title, problems);
  else if (file == nullptr)
    problems.error(member.at, "model {} has no title; add one, as in title = \"Character GPT\"",
                   in_quotes(member.name));
  if (const TomlMember* task = line("task"))
    read_value(task_parameter(), task->value, model.task, problems);
  else if (file != nullptr)
    problems.error(member.at, "model {} has no task; add one of {}", in_quotes(member.name),
                   joined(task_parameter().choices));
  const TomlMember* parameters = line("parameters");
  if (file == nullptr) {
    if (parameters != nullptr) read_parameters(parameters->value, model, problems);
    return declared.models.push_back(std::move(model));
  }
  if (parameters != nullptr)
    problems.error(parameters->at, "an exported network has no parameters; its sizes are those of the file");
  model.initial = "exported";
  if (const TomlMember* initial = line("initial")) read_initial(initial->value, model, problems);
  declare_exported(model, *file, declared, problems);
}

void declare_models(const TomlMember& section, Declared& declared, Diagnostics& problems) {
  if (section.value.table() == nullptr) return;  // reported by `read_settings`
  for (const TomlMember& member : *section.value.table()) {
    const TomlNode::Table* table = member.value.table();
    const bool own =
        table != nullptr && row_or_null(models::catalogue(), &models::Model::name, member.name) == nullptr;
    if (own && std::ranges::any_of(*table, declares_model, &TomlMember::name))
      declare_model(member, declared, problems);
  }
}

void read_dataset(const TomlMember& member, Declared& declared, Diagnostics& problems) {
  const std::string where = "[dataset." + member.name + "]";
  const TomlNode::Table* table = section_table(member, where, problems);
  if (table == nullptr || !has_own_name(member, "data set", problems)) return;
  if (row_or_null(models::datasets(), &models::Dataset::name, member.name) != nullptr)
    return problems.error(member.at,
                          "data set " + in_quotes(member.name) +
                              " is one of trainyard's; give your own another name, or set the folder of "
                              "trainyard's in [data]");
  models::Dataset dataset;
  dataset.name = member.name;
  read_keys(*table, where,
            {{"title", [&](const TomlMember& title) { read_title(title, dataset.title, problems); }}},
            problems);
  if (row_or_null(*table, &TomlMember::name, "title") == nullptr)
    problems.error(member.at, "data set {} has no title; add one, as in title = \"My captions\"",
                   in_quotes(member.name));
  declared.datasets.push_back(std::move(dataset));
}

// Reads a metric. Its margin is in its unit.
void declare_metric(const TomlMember& member, Declared& declared, Diagnostics& problems) {
  const std::string where = "[metric." + member.name + "]";
  if (const std::string problem = problem_of_metric_name(member.name); !problem.empty())
    return problems.error(member.at, "the name of a metric {}", problem);
  OwnMetric metric{member.name};
  std::string better, combine;
  double margin = 0;
  const auto unit = [&](const TomlMember& line) {
    read_title(line, metric.unit, problems, ", as in \"1/s\"");
  };
  read_table(
      member, where,
      {{"unit", unit},
       {"better", value_reader(choice("better", {"higher", "lower"}), better, problems)},
       {"combine", value_reader(choice("combine", {"mean", "sum"}), combine, problems)},
       {"margin", value_reader(bounded("margin", ValueType::number, Bound{0, false}), margin, problems)}},
      problems);
  const TomlNode::Table* table = member.value.table();
  if (table == nullptr) return;
  if (row_or_null(*table, &TomlMember::name, "better") == nullptr)
    problems.error(member.at,
                   "metric {} does not say which values are better; add better = \"higher\" or \"lower\"",
                   in_quotes(member.name));
  metric.higher_is_better = better == "higher";
  metric.is_sum = combine == "sum";
  if (const auto* line = row_or_null(*table, &TomlMember::name, "margin");
      line != nullptr && metric.is_time())
    problems.error(
        line->at,
        "a metric in {} is judged as a time, so margins.time of [compare] is its margin; remove this line",
        in_quotes(metric.unit));
  if (margin > 0) declared.margins[member.name] = margin;
  declared.metrics.push_back(std::move(metric));
}

}  // namespace

bool declares_model(const std::string& key) {
  return key == "title" || key == "task" || key == "parameters" || key == "export" || key == "initial";
}

bool names_weights(const TomlNode& item) {
  return item.text() != nullptr && item.text()->ends_with(safetensors_suffix);
}

void set_initial(const TomlNode& item, Declared& declared, Diagnostics& problems) {
  models::Model chosen;
  read_initial(item, chosen, problems);
  if (chosen.initial.empty()) return;  // reported
  if (std::ranges::none_of(declared.models, is_exported))
    problems.error(item.at,
                   fmt::format("initial must be the name of a {} file, but is {}", safetensors_suffix,
                               item.text() == nullptr ? "not a text" : in_quotes(*item.text())));
  for (models::Model& model : declared.models) {
    if (!is_exported(model)) continue;
    try {
      model = exported_model({model.name, model.title, model.data_task, model.file, chosen.initial});
    } catch (const UserError& error) {
      problems.error(item.at, error.what());
    }
  }
}

Declared read_declared(const TomlNode& root, Diagnostics& problems) {
  Declared declared;
  for (const TomlMember& section : *root.table()) {
    if (section.name == "model") declare_models(section, declared, problems);
    if (section.name == "dataset")
      for (const TomlMember& member : members_of(section, "[dataset.*]", problems))
        read_dataset(member, declared, problems);
    if (section.name == "metric")
      for (const TomlMember& member : members_of(section, "[metric.*]", problems))
        declare_metric(member, declared, problems);
  }
  return declared;
}

const models::Model* model_or_null(std::string_view name, const Declared& declared) {
  if (const auto* row = row_or_null(models::catalogue(), &models::Model::name, name)) return row;
  return row_or_null(declared.models, &models::Model::name, name);
}

const models::Dataset* declared_dataset(std::string_view name, const Declared& declared) {
  return row_or_null(declared.datasets, &models::Dataset::name, name);
}

std::vector<std::string> model_names(const Declared& declared) {
  std::vector<std::string> names = models::model_names();
  for (const models::Model& model : declared.models) names.push_back(model.name);
  return names;
}

std::vector<std::string> dataset_names(const Declared& declared) {
  std::vector<std::string> names = models::dataset_names();
  for (const models::Dataset& dataset : declared.datasets) names.push_back(dataset.name);
  return names;
}

bool is_declared(const models::Model& model) {
  return !model.graph;
}

bool is_exported(const models::Model& model) {
  return !model.file.empty();
}

}  // namespace trainyard::experiments
