#include "reports/results/metrics.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "models/catalogue.h"

namespace trainyard::reports {

namespace {

// Null for a foreign arm's model, which the catalogue does not know.
const models::Model* find_row(const std::string& model) {
  for (const models::Model& row : models::catalogue()) {
    if (row.name == model) return &row;
  }
  return nullptr;
}

}  // namespace

std::span<const Metric> metrics() {
  using Final = db::FinalMetrics;
  using Epoch = db::EpochRow;
  static const std::vector<Metric> table{
      {"train-accuracy", "Training accuracy", MetricKind::accuracy, "correct", &Final::train_accuracy,
       &Epoch::train_accuracy, false},
      {"validation-accuracy", "Validation accuracy", MetricKind::accuracy, "correct",
       &Final::validation_accuracy, &Epoch::validation_accuracy, true},
      {"test-accuracy", "Test accuracy", MetricKind::accuracy, "correct", &Final::test_accuracy, nullptr,
       false},
      {"train-loss", "Training loss", MetricKind::loss, "loss", &Final::train_loss, &Epoch::train_loss,
       false},
      {"validation-loss", "Validation loss", MetricKind::loss, "loss", &Final::validation_loss,
       &Epoch::validation_loss, true},
      {"test-loss", "Test loss", MetricKind::loss, "loss", &Final::test_loss, nullptr, false},
      {"train-perplexity", "Training perplexity", MetricKind::perplexity, "loss", &Final::train_perplexity,
       &Epoch::train_perplexity, false, "translation"},
      {"validation-perplexity", "Validation perplexity", MetricKind::perplexity, "loss",
       &Final::validation_perplexity, &Epoch::validation_perplexity, false, "translation"},
      {"test-perplexity", "Test perplexity", MetricKind::perplexity, "loss", &Final::test_perplexity, nullptr,
       false, "translation"},
      {"test-bleu", "Test BLEU", MetricKind::bleu, "", &Final::test_bleu, nullptr, false, "translation"},
      {"train-psnr", "Training PSNR", MetricKind::psnr, "loss", &Final::train_psnr, &Epoch::train_psnr, false,
       "reconstruction"},
      {"validation-psnr", "Validation PSNR", MetricKind::psnr, "loss", &Final::validation_psnr,
       &Epoch::validation_psnr, false, "reconstruction"},
      {"test-psnr", "Test PSNR", MetricKind::psnr, "loss", &Final::test_psnr, nullptr, false,
       "reconstruction"},
      {"train-seconds", "Training time per epoch", MetricKind::time, "", &Final::epoch_train_seconds,
       &Epoch::train_seconds, true},
      {"validation-seconds", "Total validation time", MetricKind::time, "", &Final::total_validation_seconds,
       &Epoch::validation_seconds, false},
      {"train-energy", "Training energy per epoch", MetricKind::energy, "", &Final::epoch_energy_joules,
       &Epoch::energy_joules, false, "", true},
  };
  return table;
}

const Metric& find_metric(const std::string& name) {
  for (const Metric& metric : metrics()) {
    if (metric.name == name) return metric;
  }
  throw InternalError("no metric is called " + name);
}

double shown_scale(MetricKind kind) {
  return kind == MetricKind::accuracy ? 100 : 1;
}

bool higher_is_better(MetricKind kind) {
  return kind == MetricKind::accuracy || kind == MetricKind::bleu || kind == MetricKind::psnr;
}

bool is_cost(MetricKind kind) {
  return kind == MetricKind::time || kind == MetricKind::energy;
}

bool is_of_every_model(const Metric& metric) {
  return metric.task.empty() && !metric.rarely_measured;
}

std::string title_of(const std::string& model) {
  const models::Model* row = find_row(model);
  return row == nullptr ? model : row->title;
}

std::string title_of(const db::RunSummary& run) {
  return run.model_title.empty() ? title_of(run.model) : run.model_title;
}

// Of a model of the user's own: what runs of its task record.
static bool declared_to_have(const db::RunSummary& run, const Metric& metric) {
  if (!metric.task.empty()) return run.task == metric.task;
  const bool counts = run.task == "classification" || run.task == "translation";
  return metric.record.empty() || metric.record == "loss" || (metric.record == "correct" && counts);
}

bool known_to_have(const db::RunSummary& run, const Metric& metric) {
  if (metric.rarely_measured) return false;
  if (!run.model_title.empty()) return declared_to_have(run, metric);
  const models::Model* row = find_row(run.model);
  if (!metric.task.empty() && (row == nullptr || row->task != metric.task)) return false;
  if (metric.record.empty()) return true;
  return row != nullptr && std::ranges::find(row->metrics, metric.record) != row->metrics.end();
}

}  // namespace trainyard::reports
