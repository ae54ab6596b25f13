// Metrics of the user (experiments/design/own_metric.h) and their values, from the database.
#pragma once

#include "db/queries/queries.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

// Adds the metrics that the plan and the records of `data.experiment` define to `data` and to `metrics()`, and their
// values to each epoch in `averages` and each run in `finals`. The value of a run is that of its last epoch, and of times
// the median over timed epochs.
void add_own_metrics(const db::Database& database, ReportData& data);

}  // namespace trainyard::reports
