// The metrics of a report, derived from models/metrics.h: one row per metric and phase, in the order of the
// page. Metrics of the user come last.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "experiments/design/own_metric.h"
#include "models/metrics.h"

namespace trainyard::reports {

using models::Margin;
using models::MetricKind;

struct Metric {
  std::string name;      // "train-accuracy": in file names and anchors
  std::string title;     // "Training accuracy"
  std::string quantity;  // "accuracy": one name for all phases
  const MetricKind* kind = &models::metric_kinds::accuracy;
  const models::Metric* of = nullptr;  // null: a cost, which every model has
  std::string column;                  // of final values: in `RunRow::values` and `trainyard export final`
  std::string epoch_column;            // of epochs, for curves; empty: test metrics and totals have none
  std::string task;                    // the first of the few tasks that have it; empty: any
  bool published = false;              // part of the table of models and arms
  bool rarely_measured = false;        // shown only if a run has a value
  // The last six are of metrics of the user, and of a file that trainyard did not make.
  std::optional<std::size_t> own_place = {};  // from 0
  std::optional<double> margin = {};          // in the unit of the effect; empty: that of the comparison
  bool reversed = false;                      // other numbers are better than the kind says
  std::string about = {};                     // a note on each verdict: "loss by its name, lower is better"
  std::string own_name = {};                  // of a metric of the user: "tokens_per_second"
  bool own_sum = false;                       // its value is the sum over ranks; else their mean
  // Whether it always has a column in the table of all models.
  bool is_of_every_model() const { return task.empty() && !rarely_measured; }
  // Judged only if the arms train different numbers of epochs: else the time per epoch says the same.
  bool is_total() const { return kind->is_cost() && epoch_column.empty(); }
  bool higher_is_better() const { return kind->higher_is_better != reversed; }
  // Limits of shown values; may be infinite.
  double least_shown() const { return kind->scale * kind->least; }
  double most_shown() const { return kind->scale * kind->most; }
};

const std::deque<Metric>& metrics();
// Puts the metrics of a file in place of the table, until the process ends. Call it before all other functions here,
// because they return pointers into the table.
void set_metrics(std::vector<Metric> of_file);
// Adds a metric of the user, unless it is there. Returns false if one of this name has another unit, direction or
// combination.
bool add_own_metric(const experiments::OwnMetric& metric);
const Metric* known_metric(const std::string& name);  // null: there is none
// A metric of the user, by the phase and name of its records. Null: there is none.
const Metric* own_metric(std::string_view phase, std::string_view name);
const Metric& find_metric(const std::string& name);  // InternalError if there is none
std::span<const Metric* const> published_metrics();  // accuracy, loss and time; see `published_in` (report.h)

// Names of the metrics that a user means: "test-accuracy" (also with _ or a space) is one, "accuracy" is the
// metric in all phases, and "time" is all times. UserError with similar names if there is no such metric.
std::set<std::string> metrics_named(const std::vector<std::string>& texts);

// SQL of a metric of the user in the epochs of the runs `keys`, joined by "'), ('". `more`: SQL of further columns.
std::string own_metric_sql(const Metric& metric, const std::string& keys, const std::string& more = "");

// The model's title in the catalogue ("MLP"), else its name.
std::string title_of(const std::string& model);

}  // namespace trainyard::reports
