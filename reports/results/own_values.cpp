#include "reports/results/own_values.h"

#include <algorithm>
#include <map>
#include <utility>

#include "reports/results/metrics.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

// Definitions of metrics of the user: those of the file, then those of records. Metrics whose definitions differ
// are left out.
void add_definitions(ReportData& data, const std::vector<experiments::OwnMetric>& stated) {
  std::map<std::string, std::vector<experiments::OwnMetric>> by_name;
  std::vector<experiments::OwnMetric> all = data.plan.metrics;
  all.insert(all.end(), stated.begin(), stated.end());
  for (const experiments::OwnMetric& metric : all)
    if (auto& known = by_name[metric.name]; std::ranges::find(known, metric) == known.end())
      known.push_back(metric);
  for (const auto& [name, found] : by_name)
    if (found.size() == 1)
      data.own_metrics.push_back(found.front());
    else
      data.odd_metrics.push_back(name);
}

}  // namespace

void add_own_values(const db::Database& database, ReportData& data) {
  if (data.own_metrics.empty()) return;
  std::vector<std::string> names;
  for (const experiments::OwnMetric& metric : data.own_metrics) names.push_back(metric.name);
  std::map<std::string, db::FinalMetrics*> finals;
  for (db::FinalMetrics& final : data.finals) finals[final.run_key] = &final;
  std::map<std::pair<std::string, std::int64_t>, db::EpochRow*> epochs;
  for (db::EpochRow& epoch : data.averages) epochs[{epoch.run_key, epoch.epoch}] = &epoch;
  std::map<std::pair<std::string, const Metric*>, std::vector<double>> times;
  for (const db::OwnValue& value : db::own_values(database, data.experiment, names)) {
    const Metric* const metric = own_metric(value.phase, value.name);
    if (metric == nullptr) continue;
    const auto epoch = epochs.find({value.run_key, value.epoch});
    const double number = metric->own_sum ? value.sum : value.mean;
    if (epoch != epochs.end()) (*epoch->second)[final_column(*metric)] = number;
    const auto final = finals.find(value.run_key);
    if (final == finals.end()) continue;
    double& of_run = (*final->second)[final_column(*metric)];
    if (!metric->kind->is_cost()) {
      of_run = number;  // of the last epoch
    } else if (value.timed) {
      std::vector<double>& all = times[{value.run_key, metric}];
      all.push_back(number);
      of_run = median(all);
    }
  }
}

void add_own_metrics(const db::Database& database, ReportData& data) {
  add_definitions(data, db::stated_metrics(database, data.experiment));
  add_own_metrics(data.own_metrics);
  add_own_values(database, data);
}

}  // namespace trainyard::reports
