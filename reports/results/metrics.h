// Metrics of runs in the database, also those of the user (experiments/design/own_metric.h).
#pragma once

#include <string>

#include "db/queries/queries.h"
#include "reports/document/metrics.h"

namespace trainyard::reports {

struct ReportData;

inline db::MetricColumn epoch_column(const Metric& metric) {
  return metric.own_place ? db::MetricColumn::own(*metric.own_place)
                          : db::MetricColumn::named(metric.epoch_column);
}

inline db::MetricColumn final_column(const Metric& metric) {
  return metric.own_place ? db::MetricColumn::own(*metric.own_place) : db::MetricColumn::named(metric.column);
}

// Its title in the file, or in the catalogue ("MLP"), else its name.
std::string title_of(const db::RunSummary& run);

// "kl" for a named part of its loss, else the metric's own title.
std::string title_of(const db::RunSummary& run, const models::Metric& metric);

// Whether the run must have the metric, by the catalogue or the declared task. A user's own model without a
// task has a loss. Its other metrics are known only from records.
bool known_to_have(const db::RunSummary& run, const Metric& metric);

// Adds the metrics of the user that the plan and the records of `data.experiment` define to `data` and to `metrics()`, and
// their values to each epoch in `averages` and each run in `finals`. The value of a run is that of its last epoch, and of
// times the median over timed epochs.
void add_own_metrics(const db::Database& database, ReportData& data);

}  // namespace trainyard::reports
