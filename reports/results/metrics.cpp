#include "reports/results/metrics.h"

#include "base/named_row.h"
#include "models/catalogue.h"

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

}  // namespace trainyard::reports
