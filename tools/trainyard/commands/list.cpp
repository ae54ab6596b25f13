// trainyard list: prints models, strategies, data sets and keys from the tables that check experiment files.
#include <algorithm>
#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/named_row.h"
#include "base/text.h"
#include "experiments/config/machine_keys.h"
#include "experiments/run/keys.h"
#include "models/catalogue.h"
#include "models/metrics.h"
#include "models/tasks.h"
#include "reports/format/aligned_text.h"
#include "reports/format/number_text.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

using reports::right_column;
using reports::Table;

// Shape of one sample: "1×28×28", "texts" or "text pairs".
std::string sample_text(const models::Dataset& dataset) {
  const models::ImageShape& shape = dataset.shape;
  return dataset.kind == models::DataKind::images
             ? fmt::format("{}×{}×{}", shape.channels, shape.height, shape.width)
             : std::string(models::kind_name(dataset.kind));
}

std::string classes_text(const models::Dataset& dataset) {
  return dataset.classes == 0 ? "" : std::to_string(dataset.classes);
}

Table parameter_table(const std::vector<Parameter>& parameters) {
  Table table;
  table.columns = {"name", "allowed", "default", "meaning"};
  for (const auto& parameter : parameters)
    table.rows.push_back(
        {parameter.name, allowed_text(parameter), default_text(parameter), parameter.meaning});
  return table;
}

void list_models() {
  Table table;
  table.columns = {"name", "task", "data sets", "about"};
  for (const auto& model : models::catalogue())
    table.rows.push_back({model.name, joined(models::tasks_of(model)), joined(model.datasets), model.about});
  std::cout << aligned_table(table);
}

// Print the hyper-parameters, and the layers with their estimated cost on the default data set.
void show_model(const std::string& name) {
  const auto& model = models::find_model(name);
  const auto& dataset = models::find_dataset(model.datasets.front());
  const auto with_records = [](const std::string& task) {
    return fmt::format("{} (records {})", task, joined(models::records_of(task)));
  };
  std::cout << model.title << ": " << model.about << "\ntask "
            << joined(models::tasks_of(model), with_records) << "; data sets " << joined(model.datasets)
            << "\n\n"
            << aligned_table(parameter_table(model.hyperparameters));
  models::Hyperparameters defaults;
  for (const auto& parameter : model.hyperparameters) defaults[parameter.name] = parameter.fallback.value();
  Table table;
  table.columns = {"layer", "kind", right_column("parameters"), right_column("forward FLOP per sample")};
  std::int64_t total = 0;
  for (const auto& node : model.graph(defaults, models::input_shape(dataset)).nodes) {
    table.rows.push_back({node.path, node.kind, node.parameters, reports::decimals(node.forward_flops, 0)});
    total += node.parameters;
  }
  std::cout << "\nlayers with these defaults on " << dataset.name << " (" << sample_text(dataset) << "), "
            << total << " parameters:\n"
            << aligned_table(table);
}

void list_tasks(const std::string& name) {
  Table table;
  table.columns = {"name", "data", "target", "output of the network", "metrics"};
  const std::string_view only = name.empty() ? "" : models::find_task(name).name;
  for (const models::Task& task : models::all_tasks) {
    if (!name.empty() && task.name != only) continue;
    std::vector<std::string> metrics;
    for (const models::Metric& metric : models::all_metrics)
      if (metric.is_of(task.name)) metrics.emplace_back(metric.name);
    std::string data(models::kind_name(task.data));
    if (task.or_data) data += fmt::format(" or {}", models::kind_name(*task.or_data));
    table.rows.push_back({std::string(task.name), data, std::string(models::target_name(task.target)),
                          gives_text(task), joined(metrics)});
  }
  std::cout << aligned_table(table);
}

void list_datasets() {
  Table table;
  table.columns = {"name", "sample", "classes", "folder", "stand-in", "about"};
  for (const auto& dataset : models::datasets())
    table.rows.push_back({dataset.name, sample_text(dataset), classes_text(dataset),
                          dataset.generated() ? "generated" : joined(dataset.folders),
                          dataset.generated() ? "" : dataset.stand_in, dataset.about});
  std::cout << aligned_table(table);
}

void show_dataset(const std::string& name) {
  const auto& dataset = models::find_dataset(name);
  std::cout << dataset.title << ": " << dataset.about << "\nsample " << sample_text(dataset)
            << (dataset.classes == 0 ? "" : ", " + classes_text(dataset) + " classes") << '\n';
  if (dataset.generated()) return;
  if (!dataset.folders.empty())
    std::cout << "folder in the data directory (--data, TRAINYARD_DATA): " << joined(dataset.folders) << '\n';
  std::cout << "files: " << joined(dataset.files) << "\n[data] " << dataset.name
            << " = \"FOLDER\" reads that folder";
  if (!dataset.stand_in.empty()) std::cout << ", \"synthetic\" uses " << dataset.stand_in << " instead";
  std::cout << '\n';
}

// The default as text. A dash if the kind does not have it.
std::string default_of(const experiments::StrategyKind::Range& range) {
  return range.any() ? std::to_string(range.fallback) : "-";
}

constexpr const char* strategies_note =
    "\nClaims: same - what one device computes, up to the order of sums; recorded - another algorithm, "
    "which\n"
    "depends on which rank is faster; none - separate models, without a verdict.\n"
    "\nThe numbers are defaults, and [strategy.NAME] changes them. For a NAME of your own, set its kind:\n"
    "  [strategy.gpipe]\n  kind = \"pipeline\"\n  stages = 4\n  schedule = \"gpipe\"\n"
    "or its command, if its ranks are a program of your own (docs/record-protocol.md):\n"
    "  [strategy.mine]\n  command = [\"python3\", \"train.py\", \"--lr\", \"{learning_rate}\"]\n"
    "  files = [\"train.py\", \"pkg/*.py\"]  # files, folders and patterns, hashed into the run's key\n"
    "  env = { NAME = \"value\" }          # variables for its ranks\n  replicas = 2\n"
    "That program can train a model and a data set of your own. Declare them in the file:\n"
    "  [model.char-gpt]\n  title = \"Character GPT\"\n  parameters = { width = 64 }\n"
    "  [dataset.my-captions]\n  title = \"My captions\"\n";

void list_strategies(const std::string& name) {
  const std::string only = name.empty() ? "" : experiments::find_strategy(name).name;
  Table table;
  table.columns = {"name",
                   right_column("replicas"),
                   right_column("stages"),
                   right_column("micro-batches"),
                   right_column("servers"),
                   right_column("tensor"),
                   "schedule",
                   "claim",
                   "about"};
  for (const auto& kind : experiments::strategy_kinds())
    if (name.empty() || kind.name == only)
      table.rows.push_back({kind.name, default_of(kind.replicas), default_of(kind.stages),
                            default_of(kind.micro_batches), default_of(kind.servers), default_of(kind.tensor),
                            kind.schedule.empty() ? "-" : kind.schedule, kind.claim, kind.about});
  std::cout << aligned_table(table) << (name.empty() ? strategies_note : "");
}

// Allowed values of a key. Long lists of names are printed by another command.
std::string allowed_of(const experiments::Key& key) {
  return key.parameter.name == "dataset" ? "one of `trainyard list datasets`" : allowed_text(key);
}

// `place`: the only tables or launchers that have the key. Empty: all. A key may have no default.
void print_key(const std::string& name, const std::string& meaning, const std::string& place,
               const std::string& allowed, const std::string& fallback) {
  std::cout << fmt::format("{:<26} {}\n{:<26} {}\n", name, meaning, place.empty() ? "" : "  (" + place + ")",
                           allowed);
  if (!fallback.empty()) std::cout << fmt::format("{:<26} default {}\n", "", fallback);
}

void list_keys(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& key : experiments::keys()) names.push_back(key.parameter.name);
  for (const auto& key : experiments::machine_keys()) names.push_back(key.name);
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
    throw UserError("no key \"" + name + "\"" + name_advice(name, names));
  for (const auto& key : experiments::keys())
    if (name.empty() || key.parameter.name == name)
      print_key(key.parameter.name, key.parameter.meaning,
                key.place == experiments::KeyPlace::strategy ? "strategies" : "", allowed_of(key),
                default_text(key.parameter));
  if (name.empty())
    std::cout
        << "\nWrite them in [defaults], [model.*] or [strategy.*], or as lists of alternatives in [matrix].\n"
           "Keys of strategies: only in [strategy.*] or [matrix]. Keys of a model: `trainyard list models "
           "NAME`.\n"
           "\nFor a program of your own: command, files and env in [strategy.NAME].\n"
           "For a model or data set of your own: title, task and parameters in [model.NAME], title in\n"
           "[dataset.NAME]. See docs/record-protocol.md.\n"
           "For a network that PyTorch exported: export, task and initial in [model.NAME]. See\n"
           "docs/exported-models.md.\n"
           "\nKeys of [machine]:\n";
  for (const auto& key : experiments::machine_keys())
    if (name.empty() || key.name == name)
      print_key(key.name, key.meaning, joined(key.launchers), key.allowed, key.fallback);
}

struct ListOptions {
  std::string what, name;
};

int list(const ListOptions& options) {
  const auto& [what, name] = options;
  if (what == "models") name.empty() ? list_models() : show_model(name);
  if (what == "tasks") list_tasks(name);
  if (what == "datasets") name.empty() ? list_datasets() : show_dataset(name);
  if (what == "strategies") list_strategies(name);
  if (what == "keys") list_keys(name);
  if (what == "schema" && !name.empty())
    throw UserError("list schema prints all keys, not \"" + name + "\"", "leave it out");
  if (what == "schema") list_schema();
  return done;
}

}  // namespace

void add_list(CLI::App& program, Invocation& invocation) {
  const auto [command, options] =
      add_verb(program, invocation, "list",
               "list models, tasks, strategies, data sets or keys\n\nschema: all keys as a "
               "JSON Schema. With NAME it prints the details of one of them.",
               list);
  command->add_option("WHAT", options->what, "models, tasks, strategies, datasets, keys or schema")
      ->required()
      ->check(one_of({"models", "tasks", "strategies", "datasets", "keys", "schema"}));
  command->add_option("NAME", options->name, "a model, task, strategy, data set or key");
}

}  // namespace trainyard::tools
