#include "experiments/read_published.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

#include "experiments/toml_tree.h"
#include "experiments/vocabulary.h"

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

std::optional<double> number_of(const Item& item) {
  double number = -1;
  if (const auto* integer = std::get_if<std::int64_t>(&item.content)) number = static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&item.content)) number = *real;
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

void report_value(const Member& member, const std::string& wanted, Problems& problems) {
  problems.error(member.value.at, member.name + " must be " + wanted + ", is " + description(member.value));
}

// [first, last]: of the first epoch and of the last.
std::vector<PublishedPoint> pair_of(const Member& member, double epochs, Problems& problems) {
  const Item::List* list = member.value.list();
  if (list == nullptr || list->size() != 2 || !number_of(list->front()) || !number_of(list->back())) {
    report_value(member, "[first, last], two numbers >= 0", problems);
    return {};
  }
  return {{1, *number_of(list->front())}, {epochs, *number_of(list->back())}};
}

struct ModelTable {
  std::string model;
  double epochs = 0;  // 0: the file does not say
};

void read_metric(const Member& member, const ModelTable& table, const std::string& arm,
                 PublishedSource& source, Problems& problems) {
  if (member.name == "note") return;
  if (!is_one_of(arm_keys(), member.name))
    return report_unknown(member, "an arm of [" + source.name + "." + table.model + "]", arm_keys(),
                          problems);
  PublishedSeries series{table.model, arm, member.name, {}};
  const bool whole = is_one_of(metrics_of_all, member.name);
  if (!whole && table.epochs < 1) {
    problems.error(member.at, member.name + " needs `epochs` in [" + source.name + "." + table.model +
                                  "]: of which epoch is it?");
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

void read_model(const Member& section, PublishedSource& source, Problems& problems) {
  ModelTable table{section.name, 0};
  for (const Member& member : *section.value.table()) {
    if (member.name != "epochs") continue;
    const auto epochs = number_of(member.value);
    if (!epochs || *epochs < 1) report_value(member, "an integer >= 1", problems);
    table.epochs = epochs.value_or(0);
  }
  for (const Member& member : *section.value.table()) {
    if (member.name == "epochs") continue;
    if (member.value.table() == nullptr) {
      report_value(member, "a table of numbers: what this arm reached", problems);
      continue;
    }
    for (const Member& metric : *member.value.table())
      read_metric(metric, table, member.name, source, problems);
  }
}

PublishedSource read_source(const Member& section, Problems& problems) {
  PublishedSource source{section.name, {}, {}};
  for (const Member& member : *section.value.table()) {
    if (member.value.table() == nullptr) continue;
    if (model_or_null(member.name) != nullptr) read_model(member, source, problems);
    if (member.name != "hardware") continue;
    for (const Member& arm : *member.value.table())
      if (arm.value.text() != nullptr) source.hardware[arm.name] = *arm.value.text();
  }
  return source;
}

std::optional<std::string> text_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error) ||
      std::filesystem::file_size(file, error) > max_file_bytes)
    return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return in ? std::optional(text.str()) : std::nullopt;
}

}  // namespace

Published published_from_toml(const std::string& text, const std::string& file, Problems& problems) {
  Published published{file, text, {}};
  try {
    const Item root = parse_toml(text, file);
    for (const Member& section : *root.table()) {
      if (section.value.table() == nullptr) continue;
      PublishedSource source = read_source(section, problems);
      if (!source.series.empty()) published.sources.push_back(std::move(source));
    }
  } catch (const NotToml& error) {
    problems.error(error.at, error.message);
    return published;
  }
  if (published.sources.empty() && problems.errors() == 0)
    problems.error({file, 1, 1},
                   "has no numbers: a table a source, in it a table a model, as in [paper-2025.mlp]");
  return published;
}

std::optional<Published> read_published(const std::string& name, const Location& at,
                                        const std::filesystem::path& folder, Problems& problems) {
  const std::filesystem::path file = folder / name;
  const std::optional<std::string> text = text_of(file);
  if (!text) {
    problems.error(at, "published names " + in_quotes(name) + ", but " + file.string() +
                           " is no file of at most " + std::to_string(max_file_bytes) +
                           " bytes that can be read");
    return std::nullopt;
  }
  Published published = published_from_toml(*text, file.string(), problems);
  published.file = name;
  return published;
}

}  // namespace trainyard::experiments
