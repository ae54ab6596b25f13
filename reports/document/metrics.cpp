#include "reports/document/metrics.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

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
std::deque<Metric> rows() {
  std::deque<Metric> table;
  for (const bool fractions : {true, false})
    for (const models::Metric& metric : models::all_metrics)
      if (metric.kind->is_fraction() == fractions)
        for (const std::string_view phase : metric.phases()) table.push_back(row_of(phase, metric));
  for (const models::Cost& cost : models::all_costs) table.push_back(row_of(cost));
  return table;
}

std::deque<Metric>& table() {
  static std::deque<Metric> all = rows();
  return all;
}

// The metrics of the user in the table. Their kinds have pieces of their texts.
struct Own {
  experiments::OwnMetric metric;
  MetricKind kind;
};
std::deque<Own>& own_metrics() {
  static std::deque<Own> all;
  return all;
}

// Times keep the margin of times. Others have the ratio of losses as margin, if the file states none.
MetricKind kind_of(const experiments::OwnMetric& metric) {
  MetricKind kind = metric.is_time() ? models::metric_kinds::time : MetricKind{};
  kind.name = metric.name;
  kind.unit = kind.shown_unit = metric.unit;
  kind.higher_is_better = metric.higher_is_better;
  kind.over_ranks = metric.is_sum ? "sum" : "average";
  kind.about_ranks = {};
  if (metric.is_time()) return kind;
  kind.margin = Margin::loss_ratio;
  kind.least = -std::numeric_limits<double>::infinity();
  return kind;
}

void add_rows(const Own& own) {
  std::string title = own.metric.name;
  std::ranges::replace(title, '_', ' ');
  for (const std::string_view phase : models::phases) {
    if (phase == "test" && own.metric.is_time()) continue;  // the run has no total of it
    Metric row = row_of(phase, {.name = own.metric.name, .title = title, .kind = &own.kind});
    std::ranges::replace(row.name, '_', '-');
    row.of = nullptr;
    row.own_name = own.metric.name;
    row.task = "own";
    row.rarely_measured = true;
    row.own_place = table().size();
    row.own_sum = own.metric.is_sum;
    table().push_back(std::move(row));
  }
}

}  // namespace

const std::deque<Metric>& metrics() {
  return table();
}

void set_metrics(std::vector<Metric> of_file) {
  table().assign(of_file.begin(), of_file.end());
}

bool add_own_metric(const experiments::OwnMetric& metric) {
  const auto known =
      std::ranges::find_if(own_metrics(), [&](const Own& own) { return own.metric.name == metric.name; });
  if (known != own_metrics().end()) return known->metric == metric;
  Own& own = own_metrics().emplace_back(Own{metric, {}});
  own.kind = kind_of(own.metric);
  add_rows(own);
  return true;
}

const Metric* known_metric(const std::string& name) {
  return row_or_null(metrics(), &Metric::name, name);
}

const Metric* own_metric(std::string_view phase, std::string_view name) {
  const auto found = std::ranges::find_if(metrics(), [&](const Metric& metric) {
    return metric.own_name == name && metric.column.starts_with(phase);
  });
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
  const auto add = [&](std::string name) {
    if (std::ranges::find(known, name) == known.end()) known.push_back(std::move(name));
  };
  for (const models::Cost& cost : models::all_costs) add(std::string(cost.kind->name));
  for (const Metric& metric : metrics()) add(metric.name.substr(metric.name.find('-') + 1));
  for (const Metric& metric : metrics()) add(metric.name);
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

std::string own_metric_sql(const Metric& metric, const std::string& keys, const std::string& more) {
  return fmt::format(
      R"sql(WITH cell (run_key) AS (VALUES ('{}'))
SELECT r.run_key, r.model, r.strategy, r.seed{}, e.epoch, {} AS {}
FROM cell JOIN (SELECT DISTINCT run_key, model, strategy, seed FROM run_in_experiment) r USING (run_key)
JOIN run_epoch e USING (run_key)
JOIN metric m ON m.run_key = e.run_key AND m.attempt = e.attempt AND m.epoch = e.epoch
WHERE m.name = '{}' AND m.phase = '{}'{}
GROUP BY r.run_key, r.strategy, e.epoch
ORDER BY r.model, r.strategy, r.seed, r.run_key, e.epoch)sql",
      keys, more, metric.own_sum ? "SUM(m.sum / m.weight)" : "SUM(m.sum) / SUM(m.weight)", metric.column,
      metric.own_name, metric.column.substr(0, metric.column.find('_')),
      metric.kind->depends_on_others ? " AND e.times_count" : "");
}

std::string title_of(const std::string& model) {
  const models::Model* row = row_or_null(models::catalogue(), &models::Model::name, model);
  return row == nullptr ? model : row->title;
}

}  // namespace trainyard::reports
