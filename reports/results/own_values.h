// Metrics of the user (experiments/design/own_metric.h) and their values, from the database.
#pragma once

#include "db/queries/queries.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

// Adds the metrics that the plan and the records of `data.experiment` define to `data` and to `metrics()`, and their
// values, as below.
void add_own_metrics(const db::Database& database, ReportData& data);

// Sets the values of `data.own_metrics`: of each epoch in `averages`, and of each run in `finals`. That of a run is
// its last one, and of times the median over timed epochs.
void add_own_values(const db::Database& database, ReportData& data);

}  // namespace trainyard::reports
