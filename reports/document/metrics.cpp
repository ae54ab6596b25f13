#include "reports/document/metrics.h"

#include <algorithm>
#include <string>
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
          .kind = metric.kind,
          .of = &metric,
          .column = column,
          .epoch_column = phase == "test" ? "" : column,
          .task = metric.is_special() ? std::string(metric.tasks.front()) : "",
          .published = metric.published && phase == "validation"};
}

Metric row_of(const models::Cost& cost) {
  return {.name = std::string(cost.name),
          .title = std::string(cost.title),
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
      if ((metric.kind == MetricKind::accuracy) == fractions)
        for (const std::string_view phase : metric.phases()) table.push_back(row_of(phase, metric));
  for (const models::Cost& cost : models::all_costs) table.push_back(row_of(cost));
  return table;
}

}  // namespace

std::span<const Metric> metrics() {
  static const std::vector<Metric> table = rows();
  return table;
}

const Metric* known_metric(const std::string& name) {
  const auto found = std::ranges::find(metrics(), name, &Metric::name);
  return found == metrics().end() ? nullptr : &*found;
}

const Metric& find_metric(const std::string& name) {
  if (const Metric* metric = known_metric(name)) return *metric;
  throw InternalError("no metric is called " + name);
}

const Metric& published_metric(MetricKind kind) {
  const auto is_wanted = [&](const Metric& metric) { return metric.published && metric.kind == kind; };
  return *std::ranges::find_if(metrics(), is_wanted);
}

std::set<std::string> metrics_named(const std::vector<std::string>& texts) {
  std::vector<std::string> known{"time"};
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
      if (metric.name == wanted || metric.name.ends_with("-" + wanted) ||
          (wanted == "time" && metric.kind == MetricKind::time))
        names.insert(metric.name);
  }
  return names;
}

const char* unit_in_database(MetricKind kind) {
  switch (kind) {
    case MetricKind::accuracy:
      return "fraction";
    case MetricKind::time:
    case MetricKind::processor_time:
      return "s";
    case MetricKind::psnr:
      return "dB";
    case MetricKind::energy:
      return "J";
    case MetricKind::loss:
    case MetricKind::perplexity:
    case MetricKind::bleu:
      return "";
  }
  return "";
}

const char* shown_unit(MetricKind kind) {
  return kind == MetricKind::accuracy ? "%" : unit_in_database(kind);
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
