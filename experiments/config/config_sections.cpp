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

// The name of a value of runs, or one of `further`.
std::optional<std::string> value_name(const TomlNode& item, const std::string& what, const Declared& declared,
                                      Diagnostics& problems, const std::vector<std::string>& further = {}) {
  std::vector<std::string> known = all_value_names(declared);
  known.insert(known.end(), further.begin(), further.end());
  const std::string* name = item.text();
  if (name != nullptr && contains(known, *name)) return *name;
  problems.error(item.at, "{} must be the name of an axis or a key, but is {}{}", what, description(item),
                 name == nullptr ? "" : name_advice(*name, known));
  return std::nullopt;
}

void read_names(const TomlMember& member, std::vector<std::string>& names, const Declared& declared,
                Diagnostics& problems, const std::vector<std::string>& further = {}) {
  const TomlNode::List* list = member.value.list();
  names.clear();
  if (list == nullptr)
    return report_wrong(member.name, "a list of axis names, as in [\"seed\"]", member.value, problems);
  for (const TomlNode& item : *list) {
    const auto name = value_name(item, member.name, declared, problems, further);
    if (name && contains(names, *name))
      problems.error(item.at, "{} has {} twice", member.name, in_quotes(*name));
    if (name) names.push_back(*name);
  }
}

// Reads a margin that is a ratio. Warns of a wide one, because a percentage is probably meant.
void read_ratio(const TomlMember& member, const std::string& of, double& ratio, Diagnostics& problems) {
  constexpr double widest = 1.5;
  read_value(bounded(member.name, ValueType::number, Bound{1, false}), member.value, ratio, problems);
  if (ratio > widest)
    problems.warning(
        member.value.at,
        "this margin is a ratio: {} times the {} of the baseline is still NO CHANGE; for 5 % write 1.05",
        trainyard::to_text(ratio), of);
}

// Warns of a margin that few differences exceed, or that few are inside: a fraction is probably meant.
void read_accuracy_margin(const TomlMember& member, double& points, Diagnostics& problems) {
  constexpr double narrowest = 0.01, widest = 5;
  read_value(bounded("accuracy_points", ValueType::number, Bound{0, false}, Bound{100}), member.value, points,
             problems);
  if (points >= narrowest && points <= widest) return;
  problems.warning(member.value.at,
                   "this margin is in percentage points: {} {} points; for half a percentage point write 0.5",
                   points < narrowest ? "NO CHANGE is hardly ever found within" : "few differences exceed",
                   trainyard::to_text(points));
}

void read_margins(const TomlMember& section, Margins& margins, Diagnostics& problems) {
  const auto absolute = bounded("absolute", ValueType::number, Bound{0});
  const auto loss = [&](const TomlMember& member) {
    read_table(
        member, "margins.loss",
        {{"ratio", [&](const TomlMember& part) { read_ratio(part, "loss", margins.loss.ratio, problems); }},
         {"absolute", value_reader(absolute, margins.loss.absolute, problems)}},
        problems);
  };
  read_table(
      section, "margins",
      {{"time", [&](const TomlMember& member) { read_ratio(member, "time", margins.time, problems); }},
       {"loss", loss},
       {"accuracy_points",
        [&](const TomlMember& member) { read_accuracy_margin(member, margins.accuracy_points, problems); }}},
      problems);
}

void read_baseline(const TomlMember& member, CompareTable& table, Diagnostics& problems) {
  table.baseline_at = member.value.at;
  table.baseline = as_value(member.value);
  if (!table.baseline) report_wrong("baseline", "a value of the axis", member.value, problems);
}

void read_comparison(const TomlNode& item, ExperimentConfig& config, Diagnostics& problems) {
  if (item.table() == nullptr) return report_wrong("compare", "a table", item, problems);
  CompareTable table;
  Compare& compare = table.compare;
  const Declared& declared = config.declared;
  table.at = table.baseline_at = item.at;
  const auto axis = [&](const TomlMember& member) {  // without a name nothing more is checked
    compare.axis = value_name(member.value, "axis", declared, problems).value_or("");
  };
  const auto differs = [&](const TomlMember& member) {
    read_names(member, compare.differs, declared, problems, contract_names());
  };
  const auto alpha = bounded("alpha", ValueType::number, Bound{0, false}, Bound{0.5});
  read_keys(
      *item.table(), "[compare]",
      {{"axis", axis},
       {"baseline", [&](const TomlMember& member) { read_baseline(member, table, problems); }},
       {"pair", [&](const TomlMember& member) { read_names(member, compare.pair, declared, problems); }},
       {"margins", [&](const TomlMember& member) { read_margins(member, compare.margins, problems); }},
       {"alpha", value_reader(alpha, compare.alpha, problems)},
       {"families", value_reader(choice("families", {"each", "all"}), compare.families, problems)},
       {"differs", differs}},
      problems);
  if (std::ranges::find(compare.pair, compare.axis) != compare.pair.end())
    problems.error(item.at, "pair has {}, which is the compared axis; remove it", in_quotes(compare.axis));
  config.compare.push_back(std::move(table));
}

// [expect.MODEL]: metric = number, or { at_least = …, at_most = … }.

// A metric in one phase: of the model's task, or of [metric.*].
struct Choice {
  std::string phase, metric;
  const models::MetricKind* kind = nullptr;  // of values without limits, if it is of [metric.*]
  bool higher_is_better = false;
  std::string name() const { return fmt::format("{}_{}", phase, metric); }
};

std::vector<Choice> choices_of(const models::Model& model, const Declared& declared) {
  std::vector<Choice> choices;
  for (const models::Metric& metric : models::all_metrics) {
    const bool any_task = is_declared(model) && model.task.empty();
    const auto has = [&](const std::string& task) { return metric.is_of(task); };
    if (any_task ? !metric.published : std::ranges::none_of(models::tasks_of(model), has)) continue;
    const auto phases = metric.phases();
    for (auto phase = phases.rbegin(); phase != phases.rend(); ++phase)
      choices.push_back(
          {std::string(*phase), std::string(metric.name), metric.kind, metric.kind->higher_is_better});
  }
  for (const OwnMetric& metric : declared.metrics)
    for (const std::string_view phase : models::phases)
      if (phase != "test" || !metric.is_time())  // a time has no test phase
        choices.push_back(
            {std::string(phase), metric.name, &models::metric_kinds::psnr, metric.higher_is_better});
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
  const std::vector<std::string> known = names_of(choices, &Choice::name);
  if (!is_metric(member.name)) return report_unknown(member, "[expect." + model.name + "]", known, problems);
  problems.error(member.at, "{} is not defined for model {} ({}); choose from {}", member.name,
                 in_quotes(model.name), model.task.empty() ? "no task" : joined(models::tasks_of(model)),
                 joined(known));
}

void read_bound(const std::string& name, const Choice& choice, const TomlNode& item,
                std::optional<double>& bound, Diagnostics& problems) {
  const models::MetricKind& kind = *choice.kind;
  // No run could reach an accuracy of 90.
  const Parameter parameter = kind.is_bounded()
                                  ? bounded(name, ValueType::number, Bound{kind.least}, Bound{kind.most})
                                  : bounded(name, ValueType::number);
  const auto value = checked_value(parameter, item, problems);
  if (!value) return;
  bound = std::get<double>(*value);
  // A fraction is probably meant, and every run would pass it.
  if (kind.is_bounded() && kind.most > 1 && *bound > 0 && *bound < 1)
    problems.error(item.at,
                   "{} is a score from 0 to {}, and this is less than 1; for the fraction {} write {}",
                   choice.metric, kind.most, trainyard::to_text(*bound),
                   trainyard::to_text(std::round(1e6 * kind.most * *bound) / 1e6));
}

void read_bounds(const TomlNode& item, const Choice& choice, Expectation& expectation,
                 Diagnostics& problems) {
  if (item.table()->empty())
    problems.error(item.at, "a threshold must have at_least or at_most, as in { at_least = 0.9 }");
  const auto bound = [&](std::optional<double>& target) {
    return [&](const TomlMember& member) { read_bound(member.name, choice, member.value, target, problems); };
  };
  read_keys(*item.table(), metric_name(expectation),
            {{"at_least", bound(expectation.at_least)}, {"at_most", bound(expectation.at_most)}}, problems);
  if (expectation.at_least && expectation.at_most && *expectation.at_least > *expectation.at_most)
    problems.error(item.at, "at_least is greater than at_most, so that no value can pass");
}

void read_line(const TomlMember& member, const models::Model& model, ExperimentConfig& config,
               Diagnostics& problems) {
  const std::vector<Choice> choices = choices_of(model, config.declared);
  const Choice* choice = row_or_null(choices, &Choice::name, member.name);
  if (choice == nullptr) return report_no_metric(member, model, choices, problems);
  Expectation expectation;
  expectation.model = model.name;
  expectation.phase = choice->phase;
  expectation.metric = choice->metric;
  if (member.value.table() != nullptr) {
    read_bounds(member.value, *choice, expectation, problems);
  } else {
    auto& bound = choice->higher_is_better ? expectation.at_least : expectation.at_most;
    read_bound("a threshold", *choice, member.value, bound, problems);
  }
  if (expectation.at_least || expectation.at_most) config.expect.push_back({expectation, member.at});
}

// [machine] and [data]: hosts of the experiment and folders of its data.

void check_options(const TomlNode& list, const LauncherRules& launcher, Diagnostics& problems) {
  if (list.list() == nullptr) return;
  for (const TomlNode& item : *list.list()) {
    if (item.text() == nullptr) continue;
    if (launcher.long_options && (item.text()->size() < 3 || !item.text()->starts_with("--")))
      problems.error(item.at, "an option of {} must be \"--name\" or \"--name=value\", but is {}",
                     launcher.program, description(item));
    else if (is_own_option(launcher, *item.text()))
      problems.error(item.at, description(item) + " is set by trainyard; remove it from options");
  }
}

// Reports keys that have no meaning with the chosen launcher.
void check_together(const TomlNode::Table& table, const Machine& machine, Diagnostics& problems) {
  for (const TomlMember& member : table) {
    const MachineKey* key = row_or_null(machine_keys(), &MachineKey::name, member.name);
    if (key == nullptr) continue;
    if (!key->launchers.empty() &&
        std::ranges::find(key->launchers, machine.launcher) == key->launchers.end())
      problems.error(member.at, "{} needs launcher = {}, but the launcher is {}", member.name,
                     joined(key->launchers, in_quotes, " or "), in_quotes(machine.launcher));
    else if (member.name == "options")
      check_options(member.value, machine.rules(), problems);
    if (member.name == "exclusive" && !machine.rules().shares_hosts && !machine.exclusive_host)
      problems.error(member.value.at,
                     "exclusive must be \"host\" if launcher = {}: {} does not share hosts between runs",
                     in_quotes(machine.launcher), machine.rules().program);
    if (machine.accelerator == "cpu" && member.name == "gpus_per_task")
      problems.error(member.at, "gpus_per_task needs GPUs, but accelerator is \"cpu\"");
    if (machine.accelerator == "cpu" && member.name == "communicator" && machine.communicator == "nccl")
      problems.error(member.value.at, "communicator \"nccl\" needs GPUs, but accelerator is \"cpu\"");
  }
}

}  // namespace

void read_compare(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems) {
  config.compare_given = true;
  if (const TomlNode::List* list = section.value.list())
    for (const TomlNode& item : *list) read_comparison(item, config, problems);
  else
    read_comparison(section.value, config, problems);
}

void read_expect(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems) {
  for (const TomlMember& member : members_of(section, "[expect.*]", problems))
    if (const models::Model* model = model_or_null(member.name, config.declared))
      for (const TomlMember& line : members_of(member, "[expect." + member.name + "]", problems))
        read_line(line, *model, config, problems);
    else
      report_no_model(member, config.declared, problems);
}

void read_machine(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems) {
  std::vector<KeyReader> keys;
  for (const MachineKey& key : machine_keys())
    keys.push_back({key.name, [&](const TomlMember& member) {
                      if (!key.read(member.value, config.machine))
                        report_wrong(key.name, key.allowed, member.value, problems);
                    }});
  read_table(section, "[machine]", keys, problems);
  if (section.value.table() != nullptr) check_together(*section.value.table(), config.machine, problems);
}

void read_data(const TomlMember& section, ExperimentConfig& config, Diagnostics& problems) {
  const std::vector<std::string> names = models::dataset_names();
  for (const TomlMember& member : members_of(section, "[data]", problems)) {
    const std::string* text = path_or_argument(member.value);
    if (declared_dataset(member.name, config.declared) != nullptr) {
      problems.error(member.at,
                     "{} is a data set of your own, which your program reads itself; remove this line",
                     in_quotes(member.name));
    } else if (is_root_key(member.name)) {
      report_unknown(member, "[data]", names, problems);
    } else if (std::ranges::find(names, member.name) == names.end()) {
      problems.error(member.at, "there is no data set {}{}", in_quotes(member.name),
                     name_advice(member.name, names));
    } else if (text == nullptr) {
      report_wrong(member.name, "a folder or \"synthetic\"", member.value, problems);
    } else if (*text != "synthetic" && models::find_dataset(member.name).generated()) {
      problems.error(member.value.at, member.name + " is generated and has no folder; remove this line");
    } else {
      config.data[member.name] = *text;
    }
  }
}

}  // namespace trainyard::experiments
