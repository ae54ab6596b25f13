// The metrics that a report judges and draws: one row each, in the order of the page.
#pragma once

#include <span>
#include <string>

#include "db/queries/queries.h"

namespace trainyard::reports {

enum class MetricKind { accuracy, loss, time, perplexity, psnr, bleu, energy };

struct Metric {
  std::string name;   // "train-accuracy": in file names and anchors
  std::string title;  // "Training accuracy"
  MetricKind kind = MetricKind::accuracy;
  std::string record;  // the catalogue's name of what it is made from; empty: times, which every model has
  double db::FinalMetrics::*final_value = nullptr;  // what enters a verdict
  double db::EpochRow::*epoch_value = nullptr;      // what is drawn by epoch; null: the test metrics
  bool published = false;                           // enters the published table
  std::string task = "";                            // the only task that has it; empty: any
  bool rarely_measured = false;                     // shown only where a run has a number
};

std::span<const Metric> metrics();
const Metric& find_metric(const std::string& name);  // InternalError where there is none

// What a value is multiplied by to be shown: accuracies are fractions in the database, and BLEU is
// from 0 to 100 everywhere.
double shown_scale(MetricKind kind);
bool higher_is_better(MetricKind kind);
// What a training costs, not what it learns: of the machine, so that it compares only between equal ones, and
// a run that diverged has it like any other.
bool is_cost(MetricKind kind);
// A verdict of it has a column in the table of all models, where anything was measured.
bool is_of_every_model(const Metric& metric);

// The model's title in the catalogue ("MLP"), or as the file declares it, else its name.
std::string title_of(const std::string& model);
std::string title_of(const db::RunSummary& run);

// Whether the run is to have the metric: by the catalogue or the task that the file declares. A model of the
// user's own without a task has a loss; what else it has the numbers say.
bool known_to_have(const db::RunSummary& run, const Metric& metric);

}  // namespace trainyard::reports
