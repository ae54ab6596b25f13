// The metrics that a report judges and draws: one row per phase of each metric, in the order of the page.
// They follow from models/metrics.h.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "db/queries/queries.h"
#include "models/metrics.h"

namespace trainyard::reports {

using models::higher_is_better;
using models::is_cost;
using models::MetricKind;
using models::shown_scale;

struct Metric {
  std::string name;   // "train-accuracy": in file names and anchors
  std::string title;  // "Training accuracy"
  MetricKind kind = MetricKind::accuracy;
  const models::Metric* of = nullptr;           // null: a cost, which every model has
  db::MetricColumn final_value;                 // what enters a verdict
  std::optional<db::MetricColumn> epoch_value;  // what is drawn by epoch; none: the test metrics
  std::string task;                             // the only task that has it; empty: any
  bool published = false;                       // enters the published table
  bool rarely_measured = false;                 // shown only if a run has a number
};

std::span<const Metric> metrics();
const Metric& find_metric(const std::string& name);  // InternalError if there is none

// A verdict of it has a column in the table of all models, where anything was measured.
bool is_of_every_model(const Metric& metric);

// The model's title in the catalogue ("MLP"), or as the file declares it, else its name.
std::string title_of(const std::string& model);
std::string title_of(const db::RunSummary& run);

// Whether the run is to have the metric: by the catalogue or the task that the file declares. A model of the
// user's own without a task has a loss; what else it has the numbers say.
bool known_to_have(const db::RunSummary& run, const Metric& metric);

}  // namespace trainyard::reports
