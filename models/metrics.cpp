#include "models/metrics.h"

namespace trainyard::models {

std::vector<std::string> records_of(std::string_view task) {
  std::vector<std::string> names;
  for (const Metric& metric : all_metrics) {
    if (!metric.is_of(task)) continue;
    if (!metric.record.empty()) names.emplace_back(metric.record);
    for (const std::string_view sum : metric.sums)
      if (!sum.empty() && std::ranges::find(names, sum) == names.end()) names.emplace_back(sum);
  }
  return names;
}

}  // namespace trainyard::models
