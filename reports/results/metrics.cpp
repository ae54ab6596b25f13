#include "reports/results/metrics.h"

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "models/catalogue.h"
#include "reports/results/report_data.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

std::string title_of(const db::RunSummary& run) {
  return run.model_title.empty() ? title_of(run.model) : run.model_title;
}

std::string title_of(const db::RunSummary& run, const models::Metric& metric) {
  const bool is_named = metric.part > 0 && metric.part <= run.loss_parts.size();
  return is_named ? run.loss_parts[metric.part - 1] : std::string(metric.title);
}

bool known_to_have(const db::RunSummary& run, const Metric& metric) {
  if (metric.rarely_measured) return false;
  if (metric.of == nullptr) return true;
  if (run.without_loss) return false;
  if (metric.of->part > 0) return metric.of->part <= run.loss_parts.size();
  if (!run.model_title.empty()) return metric.of->is_of(run.task);
  const models::Model* row = row_or_null(models::catalogue(), &models::Model::name, run.model);
  return row != nullptr && metric.of->is_of(run.task.empty() ? row->task : run.task);
}

namespace {

using LeftOut = std::set<std::pair<std::string, std::string>>;  // run and metric

// Definitions of metrics of the user: those of the file, else those of the last run that has them. Returns the values of
// runs that define a metric in another way.
LeftOut add_definitions(const db::Database& database, ReportData& data) {
  const std::vector<db::StatedMetric> stated = db::stated_metrics(database, data.experiment);
  std::map<std::string, experiments::OwnMetric> chosen;
  for (const db::StatedMetric& one : stated) chosen[one.metric.name] = one.metric;
  for (const experiments::OwnMetric& metric : data.plan.metrics) chosen[metric.name] = metric;
  LeftOut left_out;
  std::map<std::string, std::size_t> runs;
  for (const db::StatedMetric& one : stated)
    if (one.metric != chosen[one.metric.name] && left_out.emplace(one.run_key, one.metric.name).second)
      ++runs[one.metric.name];
  for (const auto& [name, count] : runs)
    data.odd_metrics.push_back(
        fmt::format("{}: left out of {}, which give it another unit, direction or combination", name,
                    counted(count, "run")));
  for (const auto& [name, metric] : chosen)
    if (add_own_metric(metric))
      data.own_metrics.push_back(metric);
    else
      data.odd_metrics.push_back(
          fmt::format("{}: left out of experiment {}, because another one gives it another unit, direction "
                      "or combination",
                      name, data.experiment));
  return left_out;
}

void add_values(const db::Database& database, const LeftOut& left_out, ReportData& data) {
  if (data.own_metrics.empty()) return;
  std::vector<std::string> names;
  for (const experiments::OwnMetric& metric : data.own_metrics) names.push_back(metric.name);
  std::map<std::string, db::FinalMetrics*> finals;
  for (db::FinalMetrics& final : data.finals) finals[final.run_key] = &final;
  std::map<std::pair<std::string, std::int64_t>, db::EpochRow*> epochs;
  for (db::EpochRow& epoch : data.averages) epochs[{epoch.run_key, epoch.epoch}] = &epoch;
  std::map<std::pair<db::FinalMetrics*, const Metric*>, std::vector<double>> times;
  for (const db::OwnValue& value : db::own_values(database, data.experiment, names)) {
    if (left_out.contains({value.run_key, value.name})) continue;
    const Metric* const metric = own_metric(value.phase, value.name);
    if (metric == nullptr) continue;
    const auto epoch = epochs.find({value.run_key, value.epoch});
    const double number = metric->own_sum ? value.sum : value.mean;
    if (epoch != epochs.end()) (*epoch->second)[final_column(*metric)] = number;
    const auto final = finals.find(value.run_key);
    if (final == finals.end()) continue;
    if (metric->kind->is_cost() && value.timed) times[{final->second, metric}].push_back(number);
    if (!metric->kind->is_cost() && (value.epoch == 0 || value.epoch == final->second->epochs))
      (*final->second)[final_column(*metric)] = number;
  }
  for (auto& [place, all] : times) (*place.first)[final_column(*place.second)] = median(std::move(all));
}

}  // namespace

void add_own_metrics(const db::Database& database, ReportData& data) {
  data.own_metrics.clear();
  data.odd_metrics.clear();
  const LeftOut left_out = add_definitions(database, data);
  add_values(database, left_out, data);
}

}  // namespace trainyard::reports
