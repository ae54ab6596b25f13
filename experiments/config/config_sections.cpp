// Readers of [compare], [expect], [machine] and [data].
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "experiments/config/config.h"
#include "experiments/config/key_lookup.h"
#include "experiments/config/machine_keys.h"
#include "experiments/design/contract.h"
#include "models/datasets/datasets.h"
#include "models/metrics.h"

namespace trainyard::experiments {

namespace {

Parameter number(const char* name, Bound minimum, std::optional<Bound> maximum = {}) {
  Parameter parameter;
  parameter.name = name;
  parameter.type = ValueType::number;
  parameter.minimum = minimum;
  parameter.maximum = maximum;
  return parameter;
}

void read_number(const Parameter& parameter, const TomlNode& item, double& target, Diagnostics& problems) {
  if (const auto value = checked_value(parameter, item, problems)) target = std::get<double>(*value);
}

void read_flag(const TomlMember& member, bool& target, Diagnostics& problems) {
  Parameter parameter;
  parameter.name = member.name;
  parameter.type = ValueType::boolean;
  if (const auto value = checked_value(parameter, member.value, problems)) target = std::get<bool>(*value);
}

// The name of a value of runs, or one of `further`.
std::optional<std::string> value_name(const TomlNode& item, const std::string& what, const Declared& declared,
                                      Diagnostics& problems, const std::vector<std::string>& further = {}) {
  std::vector<std::string> known = all_value_names(declared);
  known.insert(known.end(), further.begin(), further.end());
  const std::string* name = item.text();
  if (name != nullptr && std::find(known.begin(), known.end(), *name) != known.end()) return *name;
  problems.error(item.at, fmt::format("{} must be the name of an axis or a key, but is {}{}", what,
                                      description(item), name == nullptr ? "" : name_advice(*name, known)));
  return std::nullopt;
}

void read_names(const TomlMember& member, std::vector<std::string>& names, const Declared& declared,
                Diagnostics& problems, const std::vector<std::string>& further = {}) {
  const TomlNode::List* list = member.value.list();
  names.clear();
  if (list == nullptr) {
    problems.error(member.value.at,
                   fmt::format("{} must be a list of axis names, as in [\"seed\"], but is {}", member.name,
                               description(member.value)));
    return;
  }
  for (const TomlNode& item : *list) {
    const auto name = value_name(item, member.name, declared, problems, further);
    if (name && std::find(names.begin(), names.end(), *name) != names.end())
      problems.error(item.at, fmt::format("{} has {} twice", member.name, in_quotes(*name)));
    if (name) names.push_back(*name);
  }
}

// Reads a margin that is a ratio. Warns of a wide one, because a percentage is probably meant.
void read_ratio(const TomlMember& member, const std::string& of, double& ratio, Diagnostics& problems) {
  constexpr double widest = 1.5;
  read_number(number(member.name.c_str(), {1, false}), member.value, ratio, problems);
  if (ratio > widest)
    problems.warning(
        member.value.at,
        fmt::format("this margin is a ratio: {} times the {} of the baseline is still NO CHANGE; for 5 % "
                    "write 1.05",
                    trainyard::to_text(ratio), of));
}

// Warns of a margin that few differences exceed, or that few are inside: a fraction is probably meant.
void read_accuracy_margin(const TomlMember& member, double& points, Diagnostics& problems) {
  constexpr double narrowest = 0.01, widest = 5;
  read_number(number("accuracy_points", {0, false}, Bound{100}), member.value, points, problems);
  if (points >= narrowest && points <= widest) return;
  problems.warning(
      member.value.at,
      fmt::format("this margin is in percentage points: {} {} points; for half a percentage point write 0.5",
                  points < narrowest ? "NO CHANGE is hardly ever found within" : "few differences exceed",
                  trainyard::to_text(points)));
}

void read_loss_margin(const TomlMember& member, LossMargin& margin, Diagnostics& problems) {
  const TomlNode::Table* table = section_table(member, "margins.loss", problems);
  if (table == nullptr) return;
  for (const TomlMember& part : *table) {
    if (part.name == "ratio") {
      read_ratio(part, "loss", margin.ratio, problems);
    } else if (part.name == "absolute") {
      read_number(number("absolute", {0, true}), part.value, margin.absolute, problems);
    } else {
      report_unknown(part, "margins.loss", {"ratio", "absolute"}, problems);
    }
  }
}

void read_margins(const TomlMember& member, Margins& margins, Diagnostics& problems) {
  const TomlNode::Table* table = section_table(member, "margins", problems);
  if (table == nullptr) return;
  for (const TomlMember& part : *table) {
    if (part.name == "time") {
      read_ratio(part, "time", margins.time, problems);
    } else if (part.name == "loss") {
      read_loss_margin(part, margins.loss, problems);
    } else if (part.name == "accuracy_points") {
      read_accuracy_margin(part, margins.accuracy_points, problems);
    } else {
      report_unknown(part, "margins", {"time", "loss", "accuracy_points"}, problems);
    }
  }
}

void read_axis_name(const TomlMember& member, Compare& compare, const Declared& declared,
                    Diagnostics& problems) {
  const auto name = value_name(member.value, "axis", declared, problems);
  compare.axis = name.value_or("");  // if empty, nothing more is checked
}

void read_baseline(const TomlMember& member, CompareTable& table, Diagnostics& problems) {
  table.baseline_at = member.value.at;
  table.baseline = as_value(member.value);
  if (!table.baseline)
    problems.error(member.value.at,
                   "baseline must be a value of the axis, but is " + description(member.value));
}

void read_member(const TomlMember& member, CompareTable& table, const Declared& declared,
                 Diagnostics& problems) {
  static const std::vector<std::string> known{"axis",  "baseline", "pair",   "margins",
                                              "alpha", "final",    "differs"};
  if (member.name == "axis") return read_axis_name(member, table.compare, declared, problems);
  if (member.name == "baseline") return read_baseline(member, table, problems);
  if (member.name == "pair") return read_names(member, table.compare.pair, declared, problems);
  if (member.name == "margins") return read_margins(member, table.compare.margins, problems);
  if (member.name == "differs")
    return read_names(member, table.compare.differs, declared, problems, contract_names());
  if (member.name == "final") return read_flag(member, table.compare.final_look, problems);
  if (member.name == "alpha")
    return read_number(number("alpha", {0, false}, Bound{0.5}), member.value, table.compare.alpha, problems);
  report_unknown(member, "[compare]", known, problems);
}

std::optional<CompareTable> read_table(const TomlNode& item, const Declared& declared,
                                       Diagnostics& problems) {
  if (item.table() == nullptr) {
    problems.error(item.at, "compare must be a table, but is " + description(item));
    return std::nullopt;
  }
  CompareTable table;
  table.at = table.baseline_at = item.at;
  for (const TomlMember& member : *item.table()) read_member(member, table, declared, problems);
  const auto& pair = table.compare.pair;
  if (std::find(pair.begin(), pair.end(), table.compare.axis) != pair.end())
    problems.error(item.at,
                   "pair has " + in_quotes(table.compare.axis) + ", which is the compared axis; remove it");
  return table;
}

}  // namespace

std::vector<CompareTable> read_compare(const TomlMember& section, const Declared& declared,
                                       Diagnostics& problems) {
  std::vector<CompareTable> tables;
  const auto add = [&](const TomlNode& item) {
    if (auto table = read_table(item, declared, problems)) tables.push_back(std::move(*table));
  };
  if (const TomlNode::List* list = section.value.list()) {
    for (const TomlNode& item : *list) add(item);
  } else {
    add(section.value);
  }
  return tables;
}

// [expect.MODEL]: metric = number, or { at_least = …, at_most = … }.

namespace {

// A metric of the model's task in one phase.
struct Choice {
  std::string phase;
  const models::Metric* metric = nullptr;
  std::string name() const { return fmt::format("{}_{}", phase, metric->name); }
};

std::vector<Choice> choices_of(const models::Model& model) {
  std::vector<Choice> choices;
  for (const models::Metric& metric : models::all_metrics) {
    const bool any_task = is_declared(model) && model.task.empty();
    if (any_task ? metric.is_special() : !metric.is_of(model.task)) continue;
    const auto phases = metric.phases();
    for (auto phase = phases.rbegin(); phase != phases.rend(); ++phase)
      choices.push_back({std::string(*phase), &metric});
  }
  return choices;
}

bool is_metric(const std::string& name) {
  for (const models::Metric& metric : models::all_metrics)
    for (const std::string_view phase : models::phases)
      if (name == fmt::format("{}_{}", phase, metric.name)) return true;
  return false;
}

void report_no_metric(const TomlMember& member, const models::Model& model,
                      const std::vector<Choice>& choices, Diagnostics& problems) {
  std::vector<std::string> known;
  known.reserve(choices.size());
  for (const Choice& choice : choices) known.push_back(choice.name());
  if (!is_metric(member.name)) return report_unknown(member, "[expect." + model.name + "]", known, problems);
  problems.error(member.at, fmt::format("{} is not defined for model {} ({}); choose from {}", member.name,
                                        in_quotes(model.name), model.task.empty() ? "no task" : model.task,
                                        joined(known)));
}

std::optional<double> read_bound(const std::string& name, const models::Metric& metric, const TomlNode& item,
                                 Diagnostics& problems) {
  Parameter parameter;
  parameter.name = name;
  parameter.type = ValueType::number;
  const bool is_score = metric.kind == models::MetricKind::bleu;
  if (metric.kind == models::MetricKind::accuracy) {  // no run could reach 90
    parameter.minimum = Bound{0};
    parameter.maximum = Bound{1};
  }
  if (is_score) {
    parameter.minimum = Bound{0};
    parameter.maximum = Bound{100};
  }
  const auto value = checked_value(parameter, item, problems);
  if (!value) return std::nullopt;
  const double bound = std::get<double>(*value);
  // A fraction is probably meant, and every run would pass it.
  if (is_score && bound > 0 && bound < 1)
    problems.error(
        item.at,
        fmt::format("{} is a score from 0 to 100, and this is less than 1; for the fraction {} write {}",
                    metric.name, trainyard::to_text(bound),
                    trainyard::to_text(std::round(1e8 * bound) / 1e6)));
  return bound;
}

void read_bounds(const TomlNode& item, const models::Metric& metric, Expectation& expectation,
                 Diagnostics& problems) {
  if (item.table()->empty())
    problems.error(item.at, "a threshold must have at_least or at_most, as in { at_least = 0.9 }");
  for (const TomlMember& member : *item.table()) {
    if (member.name == "at_least")
      expectation.at_least = read_bound(member.name, metric, member.value, problems);
    else if (member.name == "at_most")
      expectation.at_most = read_bound(member.name, metric, member.value, problems);
    else
      report_unknown(member, metric_name(expectation), {"at_least", "at_most"}, problems);
  }
  if (expectation.at_least && expectation.at_most && *expectation.at_least > *expectation.at_most)
    problems.error(item.at, "at_least is greater than at_most, so that no value can pass");
}

void read_line(const TomlMember& member, const models::Model& model, std::vector<ExpectedLine>& lines,
               Diagnostics& problems) {
  const std::vector<Choice> choices = choices_of(model);
  const auto choice = std::find_if(choices.begin(), choices.end(),
                                   [&](const Choice& each) { return each.name() == member.name; });
  if (choice == choices.end()) return report_no_metric(member, model, choices, problems);
  Expectation expectation;
  expectation.model = model.name;
  expectation.phase = choice->phase;
  expectation.metric = choice->metric->name;
  if (member.value.table() != nullptr) {
    read_bounds(member.value, *choice->metric, expectation, problems);
  } else {
    auto& bound = models::higher_is_better(choice->metric->kind) ? expectation.at_least : expectation.at_most;
    bound = read_bound("a threshold", *choice->metric, member.value, problems);
  }
  if (expectation.at_least || expectation.at_most) lines.push_back({expectation, member.at});
}

}  // namespace

std::vector<ExpectedLine> read_expect(const TomlMember& section, const Declared& declared,
                                      Diagnostics& problems) {
  std::vector<ExpectedLine> lines;
  const TomlNode::Table* members = section_table(section, "[expect.*]", problems);
  if (members == nullptr) return lines;
  for (const TomlMember& member : *members) {
    const models::Model* model = model_or_null(member.name, declared);
    if (model == nullptr) {
      report_no_model(member, declared, problems);
    } else if (const TomlNode::Table* table =
                   section_table(member, "[expect." + member.name + "]", problems)) {
      for (const TomlMember& line : *table) read_line(line, *model, lines, problems);
    }
  }
  return lines;
}

// [machine] and [data]: hosts of the experiment and folders of its data.

namespace {

const MachineKey* machine_key(const std::string& name) {
  for (const MachineKey& key : machine_keys())
    if (key.name == name) return &key;
  return nullptr;
}

void check_options(const TomlNode& list, const LauncherRules& launcher, Diagnostics& problems) {
  if (list.list() == nullptr) return;
  for (const TomlNode& item : *list.list()) {
    if (item.text() == nullptr) continue;
    if (launcher.long_options && (item.text()->size() < 3 || !item.text()->starts_with("--")))
      problems.error(item.at, fmt::format("an option of {} must be \"--name\" or \"--name=value\", but is {}",
                                          launcher.program, description(item)));
    else if (is_own_option(launcher, *item.text()))
      problems.error(item.at, description(item) + " is set by trainyard; remove it from options");
  }
}

// Reports keys that have no meaning with the chosen launcher.
void check_together(const TomlNode::Table& table, const Machine& machine, Diagnostics& problems) {
  for (const TomlMember& member : table) {
    const MachineKey* key = machine_key(member.name);
    if (key == nullptr) continue;
    if (!key->launchers.empty() &&
        std::ranges::find(key->launchers, machine.launcher) == key->launchers.end())
      problems.error(member.at,
                     fmt::format("{} needs launcher = {}, but the launcher is {}", member.name,
                                 joined(key->launchers, in_quotes, " or "), in_quotes(machine.launcher)));
    else if (member.name == "options")
      check_options(member.value, machine.rules(), problems);
    if (member.name == "exclusive" && !machine.rules().shares_hosts && !machine.exclusive_host)
      problems.error(
          member.value.at,
          fmt::format("exclusive must be \"host\" if launcher = {}: {} does not share hosts between runs",
                      in_quotes(machine.launcher), machine.rules().program));
    if (machine.accelerator == "cpu" && member.name == "gpus_per_task")
      problems.error(member.at, "gpus_per_task needs GPUs, but accelerator is \"cpu\"");
    if (machine.accelerator == "cpu" && member.name == "communicator" && machine.communicator == "nccl")
      problems.error(member.value.at, "communicator \"nccl\" needs GPUs, but accelerator is \"cpu\"");
  }
}

}  // namespace

Machine read_machine(const TomlMember& section, Diagnostics& problems) {
  Machine machine;
  const TomlNode::Table* table = section_table(section, "[machine]", problems);
  if (table == nullptr) return machine;
  std::vector<std::string> names;
  for (const MachineKey& key : machine_keys()) names.push_back(key.name);
  for (const TomlMember& member : *table) {
    const MachineKey* key = machine_key(member.name);
    if (key == nullptr)
      report_unknown(member, "[machine]", names, problems);
    else if (!key->read(member.value, machine))
      problems.error(member.value.at, fmt::format("{} must be {}, but is {}", member.name, key->allowed,
                                                  description(member.value)));
  }
  check_together(*table, machine, problems);
  return machine;
}

std::map<std::string, std::string> read_data(const TomlMember& section, const Declared& declared,
                                             Diagnostics& problems) {
  std::map<std::string, std::string> data;
  const TomlNode::Table* table = section_table(section, "[data]", problems);
  if (table == nullptr) return data;
  const std::vector<std::string> names = models::dataset_names();
  for (const TomlMember& member : *table) {
    const std::string* text = path_or_argument(member.value);
    if (declared_dataset(member.name, declared) != nullptr) {
      problems.error(member.at,
                     in_quotes(member.name) +
                         " is a data set of your own, which your program reads itself; remove this line");
    } else if (is_root_key(member.name)) {
      report_unknown(member, "[data]", names, problems);
    } else if (std::find(names.begin(), names.end(), member.name) == names.end()) {
      problems.error(member.at, fmt::format("there is no data set {}{}", in_quotes(member.name),
                                            name_advice(member.name, names)));
    } else if (text == nullptr) {
      problems.error(member.value.at, fmt::format("{} must be a folder or \"synthetic\", but is {}",
                                                  member.name, description(member.value)));
    } else if (*text != "synthetic" && models::find_dataset(member.name).generated()) {
      problems.error(member.value.at, member.name + " is generated and has no folder; remove this line");
    } else {
      data[member.name] = *text;
    }
  }
  return data;
}

}  // namespace trainyard::experiments
