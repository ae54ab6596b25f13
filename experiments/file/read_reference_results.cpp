#include "experiments/file/read_reference_results.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/named_row.h"
#include "base/plain_file.h"
#include "experiments/config/key_lookup.h"
#include "experiments/config/toml_tree.h"

namespace trainyard::experiments {

namespace {

const std::vector<std::string> metrics_by_epoch{"train_accuracy", "validation_accuracy", "train_loss",
                                                "validation_loss"};
const std::vector<std::string> metrics_of_all{"train_seconds", "total_validation_seconds"};

std::vector<std::string> arm_keys() {
  std::vector<std::string> keys = metrics_of_all;
  for (const std::string& metric : metrics_by_epoch) {
    keys.push_back(metric);
    keys.push_back(metric + "_last");
  }
  keys.push_back("note");
  return keys;
}

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::optional<double> number_of(const TomlNode& item) {
  double number = -1;
  if (const auto* integer = std::get_if<std::int64_t>(&item.content)) number = static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&item.content)) number = *real;
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

void report_value(const TomlMember& member, const std::string& wanted, Diagnostics& problems) {
  problems.error(member.value.at,
                 member.name + " must be " + wanted + ", but is " + description(member.value));
}

// The points of [first, last]: the first and the last epoch.
std::vector<PublishedPoint> pair_of(const TomlMember& member, double epochs, Diagnostics& problems) {
  const TomlNode::List* list = member.value.list();
  if (list == nullptr || list->size() != 2 || !number_of(list->front()) || !number_of(list->back())) {
    report_value(member, "[first, last], two numbers >= 0", problems);
    return {};
  }
  return {{1, *number_of(list->front())}, {epochs, *number_of(list->back())}};
}

// "vgg16" is a different network than "vgg11", not a typing error.
bool differ_in_digits(std::string a, std::string b) {
  const auto is_digit = [](char character) { return character >= '0' && character <= '9'; };
  std::erase_if(a, is_digit);
  std::erase_if(b, is_digit);
  return a == b;
}

// The known name that is probably meant. Empty if `name` is known or listed in the source.
std::string meant_instead(const std::string& name, const std::vector<std::string>& known,
                          const std::vector<std::string>& of_text) {
  if (is_one_of(known, name) || is_one_of(of_text, name)) return "";
  std::string near = nearest_name(name, known);
  return differ_in_digits(near, name) ? "" : near;
}

// The list `models` or `arms` of a source.
std::vector<std::string> names_of_text(const TomlMember& section, const std::string& list,
                                       Diagnostics& problems) {
  std::vector<std::string> names;
  for (const TomlMember& member : *section.value.table()) {
    if (member.name != list || member.value.table() != nullptr) continue;
    if (member.value.list() != nullptr)
      for (const TomlNode& item : *member.value.list())
        if (item.text() != nullptr) names.push_back(*item.text());
    if (names.empty() || names.size() != member.value.list()->size())
      report_value(member, "a list of names that only the publication has", problems);
  }
  return names;
}

void report_mistyped(const TomlMember& member, const std::string& what, const std::string& near,
                     const std::string& list, const std::string& source, Diagnostics& problems) {
  problems.error(member.at, "there is no " + what + ' ' + in_quotes(member.name) + "; did you mean " +
                                in_quotes(near) + "? If only the publication has it, add " + list + " = [" +
                                in_quotes(member.name) + "] to [" + source + "]");
}

struct ModelTable {
  std::string model;
  double epochs = 0;  // 0: not in the file
};

void read_metric(const TomlMember& member, const ModelTable& table, const std::string& arm,
                 PublishedSource& source, Diagnostics& problems) {
  if (member.name == "note") return;
  if (!is_one_of(arm_keys(), member.name))
    return report_unknown(member, "an arm of [" + source.name + "." + table.model + "]", arm_keys(),
                          problems);
  PublishedSeries series{table.model, arm, member.name, {}};
  const bool whole = is_one_of(metrics_of_all, member.name);
  if (!whole && table.epochs < 1) {
    problems.error(member.at, member.name + " needs the number of epochs: set `epochs` in [" + source.name +
                                  "." + table.model + "]");
    return;
  }
  if (is_one_of(metrics_by_epoch, member.name)) {
    series.points = pair_of(member, table.epochs, problems);
  } else if (const auto value = number_of(member.value)) {
    if (!whole) series.metric.resize(series.metric.size() - std::string("_last").size());
    series.points = {{whole ? 0 : table.epochs, *value}};
  } else {
    report_value(member, "a number >= 0", problems);
  }
  if (!series.points.empty()) source.series.push_back(std::move(series));
}

void read_model(const TomlMember& section, const std::vector<std::string>& arms,
                const std::vector<std::string>& arms_of_text, PublishedSource& source,
                Diagnostics& problems) {
  ModelTable table{section.name, 0};
  for (const TomlMember& member : *section.value.table()) {
    if (member.name != "epochs") continue;
    const auto epochs = number_of(member.value);
    if (!epochs || *epochs < 1) report_value(member, "an integer >= 1", problems);
    table.epochs = epochs.value_or(0);
  }
  for (const TomlMember& member : *section.value.table()) {
    if (member.name == "epochs") continue;
    if (member.value.table() == nullptr) {
      report_value(member, "a table of numbers of this arm", problems);
      continue;
    }
    if (const std::string near = meant_instead(member.name, arms, arms_of_text); !near.empty()) {
      report_mistyped(member, "strategy", near, "arms", source.name, problems);
      continue;
    }
    for (const TomlMember& metric : *member.value.table())
      read_metric(metric, table, member.name, source, problems);
  }
}

// Whether the table has numbers of an arm. Other tables are ignored.
bool is_like_a_model(const TomlNode::Table& table) {
  return std::ranges::any_of(table, [](const TomlMember& member) {
    const TomlNode::Table* arm = member.value.table();
    return arm != nullptr && std::ranges::any_of(*arm, [](const TomlMember& metric) {
             return is_one_of(arm_keys(), metric.name);
           });
  });
}

const std::vector<std::string> verdict_metrics{"accuracy", "loss", "time"};
const std::vector<std::string> verdict_effects{"improves", "no-change", "deteriorates"};

// "mlp (mp-ddp)": a model, and an arm in brackets.
PublishedVerdict verdict_on(const std::string& text) {
  const std::size_t open = text.find(" (");
  if (open == std::string::npos || !text.ends_with(')')) return {"", "", text, ""};
  return {"", "", text.substr(0, open), text.substr(open + 2, text.size() - open - 3)};
}

void read_effect(const std::string& metric, const TomlMember& member, const PublishedNames& names,
                 const PublishedNames& of_text, PublishedSource& source, Diagnostics& problems) {
  const TomlNode::List* list = member.value.list();
  const bool texts = list != nullptr &&
                     std::ranges::all_of(*list, [](const TomlNode& item) { return item.text() != nullptr; });
  if (!texts) return report_value(member, R"x(a list of models, as in ["vgg11", "mlp (mp-ddp)"])x", problems);
  for (const TomlNode& item : *list) {
    PublishedVerdict verdict = verdict_on(*item.text());
    verdict.metric = metric;
    verdict.effect = member.name;
    const TomlMember model{verdict.model, item.at, {}};
    const TomlMember arm{verdict.arm, item.at, {}};
    if (const std::string near = meant_instead(verdict.model, names.models, of_text.models); !near.empty())
      report_mistyped(model, "model", near, "models", source.name, problems);
    if (const std::string near = meant_instead(verdict.arm, names.arms, of_text.arms);
        !verdict.arm.empty() && !near.empty())
      report_mistyped(arm, "strategy", near, "arms", source.name, problems);
    source.verdicts.push_back(std::move(verdict));
  }
}

// The table `verdict` of a source.
void read_verdicts(const TomlMember& section, const PublishedNames& names, const PublishedNames& of_text,
                   PublishedSource& source, Diagnostics& problems) {
  const std::string place = "[" + source.name + "." + section.name + "]";
  for (const TomlMember& metric : *section.value.table()) {
    if (!is_one_of(verdict_metrics, metric.name)) {
      report_unknown(metric, place, verdict_metrics, problems);
    } else if (metric.value.table() == nullptr) {
      report_value(metric, R"(a table, as in { improves = ["mlp"] })", problems);
    } else {
      for (const TomlMember& effect : *metric.value.table())
        is_one_of(verdict_effects, effect.name)
            ? read_effect(metric.name, effect, names, of_text, source, problems)
            : report_unknown(effect, metric.name + " of " + place, verdict_effects, problems);
    }
  }
}

PublishedSource read_source(const TomlMember& section, const PublishedNames& names, Diagnostics& problems) {
  PublishedSource source{section.name, {}, {}, {}};
  const std::vector<std::string> models = names_of_text(section, "models", problems);
  const std::vector<std::string> arms = names_of_text(section, "arms", problems);
  for (const TomlMember& member : *section.value.table()) {
    if (member.value.table() == nullptr) continue;
    if (member.name == "verdict") {
      read_verdicts(member, names, {models, arms}, source, problems);
    } else if (is_one_of(names.models, member.name)) {
      read_model(member, names.arms, arms, source, problems);
    } else if (const std::string near = meant_instead(member.name, names.models, models);
               !near.empty() && is_like_a_model(*member.value.table())) {
      report_mistyped(member, "model", near, "models", source.name, problems);
    }
    if (member.name != "hardware") continue;
    for (const TomlMember& arm : *member.value.table())
      if (arm.value.text() != nullptr) source.hardware[arm.name] = *arm.value.text();
  }
  return source;
}

}  // namespace

Published published_from_toml(const std::string& text, const std::string& file, const PublishedNames& names,
                              Diagnostics& problems) {
  Published published{file, text, {}};
  try {
    const TomlNode root = parse_toml(text, file);
    for (const TomlMember& section : *root.table()) {
      if (section.value.table() == nullptr) continue;
      PublishedSource source = read_source(section, names, problems);
      if (!source.series.empty() || !source.verdicts.empty()) published.sources.push_back(std::move(source));
    }
  } catch (const NotToml& error) {
    problems.error(error.at, error.message);
    return published;
  }
  if (published.sources.empty() && problems.errors() == 0)
    problems.error({file, 1, 1},
                   "has no numbers; write one table per source and model, as in [paper-2025.mlp]");
  return published;
}

std::optional<Published> read_published(const std::string& name, const Location& at,
                                        const std::filesystem::path& folder, const PublishedNames& names,
                                        Diagnostics& problems) {
  const std::filesystem::path file = folder / name;
  const PlainContent content = plain_content(file, max_file_bytes);
  if (!content.problem.empty()) {
    problems.error(at, "published names " + in_quotes(name) + ", but " + file.string() +
                           " is not a readable file: " + content.problem);
    return std::nullopt;
  }
  Published published = published_from_toml(content.text, file.string(), names, problems);
  published.file = name;
  return published;
}

}  // namespace trainyard::experiments
