#include "reports/document/metrics.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/named_row.h"
#include "models/catalogue.h"

namespace trainyard::reports {

namespace {

// "Training accuracy".
std::string title_of(std::string_view phase, const models::Metric& metric) {
  const std::string first = phase == "train" ? "Training" : phase == "validation" ? "Validation" : "Test";
  return fmt::format("{} {}", first, metric.title);
}

Metric row_of(std::string_view phase, const models::Metric& metric) {
  const std::string name(metric.name);
  const std::string column = fmt::format("{}_{}", phase, name);
  return {.name = fmt::format("{}-{}", phase, name),
          .title = title_of(phase, metric),
          .quantity = std::string(metric.title),
          .kind = metric.kind,
          .of = &metric,
          .column = column,
          .epoch_column = phase == "test" ? "" : column,
          .task = metric.published ? "" : std::string(metric.tasks.front()),
          .published = metric.published && phase == "validation"};
}

Metric row_of(const models::Cost& cost) {
  return {.name = std::string(cost.name),
          .title = std::string(cost.title),
          .quantity = std::string(cost.quantity),
          .kind = cost.kind,
          .column = std::string(cost.final_column),
          .epoch_column = std::string(cost.epoch_column),
          .task = "",
          .published = cost.published,
          .rarely_measured = cost.rarely_measured};
}

// All rows, fractions first.
std::vector<Metric> rows() {
  std::vector<Metric> table;
  for (const bool fractions : {true, false})
    for (const models::Metric& metric : models::all_metrics)
      if (metric.kind->is_fraction() == fractions)
        for (const std::string_view phase : metric.phases()) table.push_back(row_of(phase, metric));
  for (const models::Cost& cost : models::all_costs) table.push_back(row_of(cost));
  return table;
}

std::vector<Metric>& table() {
  static std::vector<Metric> all = rows();
  return all;
}

}  // namespace

std::span<const Metric> metrics() {
  return table();
}

void set_metrics(std::vector<Metric> of_file) {
  table() = std::move(of_file);
}

const Metric* known_metric(const std::string& name) {
  const auto found = std::ranges::find(metrics(), name, &Metric::name);
  return found == metrics().end() ? nullptr : &*found;
}

const Metric& find_metric(const std::string& name) {
  if (const Metric* metric = known_metric(name)) return *metric;
  throw InternalError("no metric is called " + name);
}

std::span<const Metric* const> published_metrics() {
  static const std::vector<const Metric*> published = [] {
    std::vector<const Metric*> found;
    for (const Metric& metric : metrics())
      if (metric.published) found.push_back(&metric);
    return found;
  }();
  return published;
}

std::set<std::string> metrics_named(const std::vector<std::string>& texts) {
  std::vector<std::string> known;
  for (const models::Cost& cost : models::all_costs)
    if (std::string kind(cost.kind->name); std::ranges::find(known, kind) == known.end())
      known.push_back(std::move(kind));
  for (const Metric& metric : metrics())
    if (std::string kind = metric.name.substr(metric.name.find('-') + 1);
        std::ranges::find(known, kind) == known.end())
      known.push_back(std::move(kind));
  for (const Metric& metric : metrics()) known.push_back(metric.name);
  std::set<std::string> names;
  for (const std::string& text : texts) {
    std::string wanted = text;
    std::ranges::replace_if(
        wanted, [](char character) { return character == '_' || character == ' '; }, '-');
    if (std::ranges::find(known, wanted) == known.end())
      throw UserError("there is no metric \"" + text + "\"", name_advice(wanted, known));
    for (const Metric& metric : metrics())
      if (metric.name == wanted || metric.name.ends_with("-" + wanted) || wanted == metric.kind->name)
        names.insert(metric.name);
  }
  return names;
}

namespace {

std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<double> least_shown(const Metric& metric) {
  return if_finite(metric.kind->scale * metric.kind->least);
}

std::optional<double> most_shown(const Metric& metric) {
  return if_finite(metric.kind->scale * metric.kind->most);
}

bool is_of_every_model(const Metric& metric) {
  return metric.task.empty() && !metric.rarely_measured;
}

std::string title_of(const std::string& model) {
  for (const models::Model& row : models::catalogue())
    if (row.name == model) return row.title;
  return model;
}

}  // namespace trainyard::reports
